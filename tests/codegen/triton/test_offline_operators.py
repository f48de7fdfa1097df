"""Kernels that the interpreter runs but only a GPU's compiler could refuse: products in turns, and bytes as float8."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compiler.codegen.triton.render import render_triton
from compiler.devices import device_for
from compiler.ir.nodes import LoopNode
from compiler.runtime.triton.offline import OfflineResult, compile_offline
from compiler.schedule.group import Group, Member, Space
from tests.compile_program import compile_program, compiled_for_gpus
from tests.lowering.checks import Samples
from tests.lowering.tables import OPERATORS

ROWS = {row.name: row for row in OPERATORS}


def compiled(name: str, target: str) -> list[OfflineResult]:
    """The loop nodes of a row's first sample of each dtype, each a kernel of its own."""
    results = []
    for dtype in ROWS[name].dtypes:
        sample = Samples.of(name, ROWS[name].function, ROWS[name].samples(dtype)[:1])
        assert sample is not None
        storage = {buffer: layout.dtype for buffer, layout in sample.graph.buffers.items()}
        for node in sample.graph.nodes:
            if isinstance(node, LoopNode):
                space, member = Space(node.x_dims, node.r_dims), Member(node, node.body)
                group = Group(f"fused_{node.name}", space, (member,), frozenset({node.name}))
                kernel = render_triton(group, storage, device_for(target))
                results.append(compile_offline(kernel, storage, target))
    return results


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize("name", ["to_float8.e4m3fn", "to_float8.e5m2", "from_float8", "float8.full", "float8.put"])
def test_float8_compiles_for_gpus_with_and_without_it(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(tmp_path))
    results = compiled(name, target)
    assert results and all(result.error is None and result.spills == 0 for result in results)
    has_own = any("e4m3x2" in result.ptx for result in results)
    assert has_own == (target != "sm_80" and name != "to_float8.e5m2")


def test_product_at_computed_places_compares_and_swaps() -> None:
    results = compiled("scatter_reduce.prod", "sm_90")
    assert all(result.error is None and result.spills == 0 for result in results)
    swapping = [result for result in results if "atom.global" in result.ptx and ".cas" in result.ptx]
    assert len(swapping) == len(ROWS["scatter_reduce.prod"].dtypes)


@pytest.mark.parametrize("kind", ["amax", "amin", "prod", "sum"])
def test_a_program_of_one_row_updates_one_place(kind: str) -> None:
    def function(rows: torch.Tensor, weight: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.ones(6).scatter_reduce(0, places, (rows * weight).sum(-1), kind)

    compiled_for_gpus(compile_program(function, torch.empty(6, 8), torch.empty(8), torch.zeros(6, dtype=torch.int64)))

"""What is left out when a kernel is compiled to be launched leaves its binary as it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import device_for
from compiler.runtime import triton_cache, triton_offline, triton_passes, triton_reading
from tests.codegen.triton import groups
from tests.codegen.triton.groups import Case
from tests.compile_program import compile_program

B = torch.bfloat16
CASES = [
    groups.pointwise(torch.float16, 4096, 4096),
    groups.transposed(1000, 1000, B),
    groups.softmax(4096, 40000, B),
    groups.layer_norm(16, 100000),
    groups.reduction("argmax", 4096, 32000, 1),
    groups.reduction("sum", 4096, 4096, 0),
    groups.embedding(50000, 768, 4096),
    groups.random(1 << 20, "randn"),
]


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> partial[bytes]:
    monkeypatch.setattr(triton_cache, "through_cache", partial(triton_cache.through_cache, is_launched=True))
    return partial(_binary, tmp_path, monkeypatch)


def _binary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kernel: RenderedKernel, storage: dict[str, torch.dtype], name: str
) -> bytes:
    """What is launched, compiled anew."""
    monkeypatch.setenv("FUSIONSCOPE_CACHE_DIR", str(folder / name))
    made: bytes = triton_offline._compile(kernel, storage, "sm_90").asm["cubin"]
    return made


def leave_all_to_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (triton_passes, triton_reading):
        monkeypatch.setattr(part, "KNOWN", ())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_binaries_are_those_of_tritons_own_way(
    case: Case, binary: partial[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    passed_over: list[bool] = []
    without_products = triton_passes.without_products
    monkeypatch.setattr(
        triton_passes,
        "without_products",
        lambda *given: passed_over.append(without_products(*given)) or passed_over[-1],
    )
    ours = binary(kernel, case.storage, "ours")
    assert passed_over == [True]
    leave_all_to_triton(monkeypatch)
    assert binary(kernel, case.storage, "triton's") == ours
    assert passed_over == [True]


def test_products_pass_as_triton_has_them(binary: partial[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def gated(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
        return F.silu(x @ gate) * (x @ up)

    compilation = compile_program(gated, *(torch.ones(256, 256, dtype=B) for _ in range(3)))
    assert compilation.schedule is not None
    (kernel,) = [kernel for kernel in compilation.triton.values() if "tl.dot(" in kernel.source]
    passed_over: list[bool] = []
    without_products = triton_passes.without_products
    monkeypatch.setattr(
        triton_passes,
        "without_products",
        lambda *given: passed_over.append(without_products(*given)) or passed_over[-1],
    )
    ours = binary(kernel, compilation.schedule.graph.dtypes, "ours")
    assert passed_over == [False]
    leave_all_to_triton(monkeypatch)
    assert binary(kernel, compilation.schedule.graph.dtypes, "triton's") == ours

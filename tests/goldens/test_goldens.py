"""What the compiler makes of a few programs, word for word: loops, decisions, wrapper, kernels.

One file a program. After a change that is meant, `pytest tests/goldens --snapshot-update` writes them anew, and the
difference is read in the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Generated
from compiler.schedule.describe.decisions import describe_all
from compiler.schedule.describe.schedule import describe_loops
from tests.compile_program import compile_program
from tests.schedule.test_kernels_and_bytes import (
    chances_so_far,
    dead_matmul,
    gelu_mlp,
    layer_norm,
    reverse_read,
    rnd,
    rope,
    scatter_rows,
    softmax,
    wavy_gate,
)

CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "pointwise_chain": (wavy_gate, (rnd(1024, 1024), rnd(1024, 1024))),
    "softmax_by_hand": (softmax, (rnd(1024, 1024),)),
    "layer_norm_bfloat16": (layer_norm, tuple(rnd(*s).bfloat16() for s in ((512, 768), (768,), (768,)))),
    "multilayer_perceptron": (gelu_mlp, (rnd(512, 64), rnd(128, 64), rnd(128), rnd(64, 128), rnd(64))),
    "dead_matrix_product": (dead_matmul, (rnd(8, 16), rnd(16, 32), rnd(16, 32), rnd(32, 16))),
    "reverse_read": (reverse_read, (rnd(4096, 512),)),
    "rotary_embedding": (rope, (rnd(2, 4, 64, 32), rnd(64, 32), rnd(64, 32))),
    "transposed_read": (lambda x, y: x.t() + y, (rnd(512, 512), rnd(512, 512))),
    "scan_of_a_softmax": (chances_so_far, (rnd(512, 1000),)),
    "scan_of_long_rows": (lambda x: (x * 2).cumsum(-1) + 1, (rnd(1024, 20000),)),
    "scan_of_few_long_rows": (lambda x: (x * 2).cumsum(-1) + 1, (rnd(2, 1000001),)),
    "scatter_in_place": (scatter_rows, (rnd(512, 48), rnd(512, 48), torch.arange(512) % 64)),
    "sum_of_everything": (lambda x: x.sum(), (rnd(4096, 4096),)),
    "log_sum_of_exponentials_of_long_rows": (lambda x: torch.logsumexp(x, -1), (torch.empty(2048, 50304),)),
    "variance_of_long_rows": (lambda x: x.var(-1), (torch.empty(40, 200001),)),
    "softmax_by_teams": (softmax, (torch.empty(512, 131072),)),
    "batch_norm_in_training": (
        lambda x, w, b: torch.relu(torch.nn.functional.batch_norm(x, None, None, w, b, True)),
        (rnd(16, 32, 14, 14), rnd(32), rnd(32)),
    ),
}


def render(compilation: Generated) -> str:
    """Everything that a reader of the page would see, without figures that depend on the machine."""
    parts = ["# loops before fusion"]
    for node in describe_loops(compilation.loops, compilation.schedule.dead):
        parts += [f"{node.name}: {node.kind} {node.sizes} | {node.reduction_sizes}", *(f"    {x}" for x in node.body)]
    parts += ["", "# decisions"]
    for decision in describe_all(compilation.schedule):
        parts.append(
            f"{decision.round} {decision.a} + {decision.b}: {decision.verdict}, {decision.reason}: {decision.message}"
        )
    parts += ["", "# wrapper", render_wrapper(compilation.schedule, compilation.memory, compilation.primary)]
    for group in compilation.groups:
        for kernel in (compilation.triton[group.name], compilation.cpp[group.name]):
            parts += [f"# {kernel.language}: {group.name}", kernel.source]
    return "\n".join(parts)


class GoldenFile(SingleFileSnapshotExtension):
    """One readable text file for each case."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, snapshot: SnapshotAssertion) -> None:
    function, inputs = CASES[name]
    assert render(compile_program(function, *inputs)) == snapshot(extension_class=GoldenFile)

"""A snippet's own Triton kernel: its text by itself, linked to the snippet, down to machine code without a GPU."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch
from torch._higher_order_ops import triton_kernel_wrap
from torch.fx.immutable_collections import immutable_dict
from torch.utils._pytree import tree_flatten

from compiler.devices import device_for
from compiler.ir.nodes import ExternNode, Layout, TensorArgument
from compiler.lowering.tree_calls import TreeCall
from compiler.lowering.user_kernels import launches_alone, user_kernel
from compiler.machine_code.of_report import kernel_to_compile
from compiler.options import Options
from compiler.pipeline import explore
from compiler.present import add_user_kernel
from compiler.report import Environment, Graph, Kernel, Report
from compiler.runtime.timing.kernel_times import KernelTimes, note_times
from compiler.runtime.timing.measure import Samples
from compiler.wording import SNIPPET_FILE

SNIPPET = """import triton
import triton.language as tl
from triton.language import load as read

STEP = tl.constexpr(3)

@triton.jit
def moved(value):
    return value + STEP

@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=2)], key=["n"])
@triton.jit
def move(
    x, y, n, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, moved(read(x + i, mask=i < n)), mask=i < n)
"""


def call_of(given: dict[str, Any]) -> ExternNode:
    """As lowering makes it; tensors of the call are those of the library call, in order."""
    scope: dict[str, Any] = {"__name__": "snippet"}
    linecache.cache[SNIPPET_FILE] = (len(SNIPPET), None, SNIPPET.splitlines(keepends=True), SNIPPET_FILE)
    exec(compile(SNIPPET, SNIPPET_FILE, "exec"), scope)
    table = triton_kernel_wrap.kernel_side_table
    # Some releases of torch hand out the dictionaries of FX, which nobody may change.
    named = immutable_dict({
        "kernel_idx": table.add_kernel(scope["move"]),
        "constant_args_idx": table.add_constant_args(given),
        "grid": [(4, 1, 1)],
        "tma_descriptor_metadata": {},
        "kwargs": immutable_dict({"x": "a tensor", "y": "a tensor"}),
        "tensors_to_clone": ["y"],
    })  # fmt: skip
    leaves, structure = tree_flatten(((), named))
    holes = tuple(place for place, leaf in enumerate(leaves) if leaf == "a tensor")
    target = triton_kernel_wrap.triton_kernel_wrapper_functional
    call = TreeCall("wrapper", target, tuple(leaves), holes, structure)
    layout = Layout.contiguous((1000,), torch.float32)
    arguments = (TensorArgument("x", layout), TensorArgument("y", layout))
    return ExternNode("wrapper", call, arguments, {}, (("y_1", layout),))


def test_it_is_compiled_from_the_report_and_linked_to_the_snippet() -> None:
    call = call_of({"n": 1024})
    kernel = Kernel(name=str(call.target), kind="extern", nodes=[call.name], source="")
    add_user_kernel(kernel, call)
    assert kernel.name == "move"
    lines = {line.line: line.user_lines for line in kernel.lines}
    written = kernel.source.splitlines()
    for place, (own,) in lines.items():
        assert written[place - 1] == SNIPPET.splitlines()[own - 1]
    assert kernel.grid == [4, 1, 1] and kernel.own is not None
    graph = Graph(name="graph_0", kernels=[kernel])
    report = Report(source=SNIPPET, environment=Environment(target="sm_90"), graphs=[graph])
    text, wanted = kernel_to_compile(report, "move")
    assert wanted.constants == {"BLOCK": 256} and wanted.launch == {"num_warps": 2, "num_stages": 3}
    code = explore(text, Options(machine_code=wanted)).machine_code
    assert code is not None
    store = next(place for place, line in enumerate(written, start=1) if "tl.store" in line)
    ptx = next(level for level in code.levels if level.name == "ptx")
    stored = [ptx.text.splitlines()[line - 1] for line, source in ptx.lines if source == store]
    assert any("st.global" in line for line in stored)


def test_it_is_launched_alone_on_the_same_copies_of_what_it_writes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    node = call_of({"n": 1024})
    x, y = torch.zeros(1000), torch.zeros(1000)
    launched: list[dict[str, Any]] = []

    def launch(**named: Any) -> None:
        launched.append(named["kwargs"])
        named["kwargs"]["y"].add_(1)

    monkeypatch.setattr(triton_kernel_wrap, "triton_kernel_wrapper_mutation", launch)
    assert isinstance(node.target, TreeCall)
    alone = launches_alone(node.target, [x, y])
    alone()
    alone()
    first, second = launched
    assert first["x"] is x and first["y"] is second["y"] is not y
    assert first["y"].sum() == 2000 and y.sum() == 0


def test_its_time_is_in_the_report_and_no_bandwidth() -> None:
    call = call_of({"n": 1024})
    kernel = Kernel(name=str(call.target), kind="extern", nodes=[call.name], source="", bytes=12_000)
    add_user_kernel(kernel, call)
    graph = Graph(name="graph_0", kernels=[kernel])
    samples = Samples((0.01,) * 9)
    note_times(graph, KernelTimes({call.name: samples}, samples), None, device_for("sm_90"))
    assert (kernel.measured_us, kernel.gb_per_s, kernel.percent_of_peak) == (10.0, None, None)
    assert kernel.own is not None


@pytest.mark.gpu
def test_it_is_timed_alone_on_a_gpu() -> None:
    source = f"""{SNIPPET}
import torch

@torch.compile
def f(x):
    y = torch.empty_like(x)
    move[(4096,)](x, y, x.numel())
    move[(4096,)](y, x, x.numel())
    return y * 2

f(torch.randn(1 << 20, device="cuda"))
"""
    report = explore(source, Options(device="cuda"))
    own = [kernel for graph in report.graphs for kernel in graph.kernels if kernel.own is not None]
    assert report.error is None and len(own) == 2
    for kernel in own:
        assert kernel.measured_us is not None and 0.5 < kernel.measured_us < 1000 and kernel.spread_us is not None
        assert kernel.gb_per_s is None and kernel.percent_of_peak is None


@pytest.mark.parametrize(("n", "is_said"), [(None, True), (2.0, False)])
def test_what_cannot_be_stated_is_said(n: object, is_said: bool) -> None:
    found = user_kernel(call_of({"n": n}))
    assert found is not None and (found.problem is not None) == is_said

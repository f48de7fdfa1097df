"""Operators and Triton kernels of the snippet's own: they stay calls, and what is missing for that is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler.backend import fusionscope
from compiler.machine_code.of_report import kernel_to_compile
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report

OPERATORS = """import torch
from torch import Tensor

@torch.library.custom_op("fusionscope_tests::scale", mutates_args=())
def scale(x: Tensor, by: float) -> Tensor:
    return x * by

@scale.register_fake
def _(x, by):
    return torch.empty_like(x)

scale.register_autograd(
    lambda ctx, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)

@torch.library.custom_op("fusionscope_tests::sin_into", mutates_args=("out",))
def sin_into(x: Tensor, out: Tensor) -> None:
    out.copy_(x.sin())

@torch.library.custom_op("fusionscope_tests::other_than_said", mutates_args=())
def other_than_said(x: Tensor) -> Tensor:
    return x[:3].clone()

other_than_said.register_fake(lambda x: torch.empty_like(x))

@torch.library.custom_op("fusionscope_tests::without_fake", mutates_args=())
def without_fake(x: Tensor) -> Tensor:
    return x * 2

"""

KERNEL = """import torch
import triton
import triton.language as tl

@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

"""

PLAIN_KERNEL = """def call(x):
    y = torch.empty_like(x)
    add_one[(1,)](x, y, x.numel(), BLOCK=64)
    return y
"""

KERNEL_AS_OPERATOR = """@torch.library.triton_op("fusionscope_tests::add_one", mutates_args=())
def call(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    torch.library.wrap_triton(add_one)[(1,)](x, y, x.numel(), BLOCK=64)
    return y
"""

USE = """
@torch.compile
def f(x):
    return call(x.sin()) * 2

assert torch.allclose(f(torch.linspace(0, 1, 64)), (torch.linspace(0, 1, 64).sin() + 1) * 2)
"""


def explored(source: str, device: str = "cpu") -> Report:
    return explore(source, Options(device=device, timing=Timing(enabled=False)))


def program(definition: str, arguments: str) -> str:
    return f"{OPERATORS}@torch.compile\n{definition}\n\nf({arguments})\n"


WORKING = {
    "functional": ("def f(x):\n    return scale(x.sin(), 3.0) + 1", "torch.randn(8, 8)", "fusionscope_tests.scale"),
    "trained": (
        "def f(x):\n    return scale(x.sin(), 3.0).sum()",
        "torch.randn(8, 8, requires_grad=True)",
        "fusionscope_tests.scale",
    ),
    "writing to a new tensor": (
        "def f(x):\n    out = torch.empty_like(x)\n    sin_into(x + 1, out)\n    return out * 2",
        "torch.randn(8, 8)",
        "fusionscope_tests.sin_into",
    ),
    "writing to an input": (
        "def f(x, out):\n    sin_into(x + 1, out)\n    return out * 2",
        "torch.randn(8, 8), torch.zeros(8, 8)",
        "fusionscope_tests.sin_into",
    ),
}


@pytest.mark.parametrize("name", WORKING)
def test_an_operator_of_the_snippet_stays_a_call(name: str) -> None:
    definition, arguments, operator = WORKING[name]
    report = explored(program(definition, arguments))
    assert report.error is None
    (call,) = [kernel for kernel in report.graphs[0].kernels if kernel.kind == "extern"]
    assert call.name == operator
    assert call.source.startswith(f"# {operator} ")
    assert call.user_lines and report.summary.compiled_error is not None and report.summary.compiled_error < 1e-6
    refused = {one.reason for one in report.graphs[0].decisions if set(call.nodes) & {one.a, one.b}}
    assert refused == {"kind.fallback"}, "no library has it"


def test_an_operator_that_writes_to_its_argument_does_so_when_compiled() -> None:
    names: dict[str, Any] = {}
    exec(OPERATORS, names)

    def f(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        names["sin_into"](x + 1, rows[1])
        return rows * 2

    x, ours, theirs = torch.randn(8), torch.ones(3, 8), torch.ones(3, 8)
    for dynamic in (False, True):
        result = torch.compile(f, backend=fusionscope, dynamic=dynamic)(x, ours)
        torch.testing.assert_close(result, f(x, theirs))
        torch.testing.assert_close(ours, theirs)


def test_a_missing_fake_says_where_and_what_to_do() -> None:
    source = program("def f(x):\n    return without_fake(x + 1) * 2", "torch.randn(8)")
    error = explored(source).error
    assert error is not None and error.hint is not None and "register_fake" in error.hint
    assert source.splitlines()[(error.line or 0) - 1] == "    return without_fake(x + 1) * 2"


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what is said where there is no GPU")
@pytest.mark.parametrize("definition", [PLAIN_KERNEL, KERNEL_AS_OPERATOR], ids=["kernel", "operator"])
def test_a_triton_kernel_without_a_gpu_is_one_clear_sentence(definition: str) -> None:
    source = KERNEL + definition + USE
    error = explored(source).error
    assert error is not None and error.type != "InternalError" and error.hint is not None
    assert "needs a GPU" in error.hint
    launches = ("add_one[", "torch.library.wrap_triton(add_one)[")
    assert source.splitlines()[(error.line or 0) - 1].strip().startswith(launches)


@pytest.mark.gpu
@pytest.mark.parametrize("definition", [PLAIN_KERNEL, KERNEL_AS_OPERATOR], ids=["kernel", "operator"])
def test_a_triton_kernel_of_the_snippet_runs_on_a_gpu(definition: str) -> None:
    report = explored(KERNEL + definition + USE.replace("0, 1, 64", "0, 1, 64, device='cuda'"), "cuda")
    assert report.error is None
    (graph,) = report.graphs
    (kernel,) = [kernel for kernel in graph.kernels if kernel.kind == "extern"]
    assert kernel.name == "add_one" and kernel.own is not None and kernel.own.problem is None
    places = {line.line: line.user_lines for line in kernel.lines}
    written, snippet = kernel.source.splitlines(), report.source.splitlines()
    store = next(place for place, line in enumerate(written, start=1) if "tl.store" in line)
    assert "tl.store" in snippet[places[store][0] - 1]
    _, wanted = kernel_to_compile(report, "add_one", target="sm_90")
    code = explore(kernel.source, Options(machine_code=wanted)).machine_code
    assert code is not None and code.levels[-1].name == "sass"
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-6


def test_an_operator_that_gives_other_than_its_fake_says_is_told_apart() -> None:
    """Kernels get addresses alone: one made for eight elements would read beyond three."""
    report = explored(program("def f(x):\n    return other_than_said(x + 1) * 2", "torch.randn(8)"))
    error = report.error
    assert error is not None and error.type == "WrongFake" and error.traceback is None
    assert "fusionscope_tests.other_than_said" in error.message and "shape [3]" in error.message
    assert "register_fake" in (error.hint or "")
    assert error.line is not None and "other_than_said(x + 1)" in report.source.splitlines()[error.line - 1]

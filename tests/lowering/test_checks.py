"""Checks of values: they fail as eager's do, in kernels of every kind, and are never fused or optimised away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope
from compiler.codegen.rendered import RenderedKernel
from compiler.compile import Generated, build
from compiler.ir.interpret import run
from compiler.ir.nodes import ExternNode
from compiler.runtime.interpreter.interpreter import interpret
from compiler.schedule.group import Group
from tests.compile_program import compile_program, compiled_for_gpus, empty_of

aten = torch.ops.aten


def of_sums(x: Tensor) -> Tensor:
    """A check of a reduction, whose message has signs that code must spell otherwise."""
    aten._assert_async.msg((x >= 0).all(), 'not "negative"\\\n… ?')
    return x.sqrt().sum(1)


def of_a_scalar(scale: Tensor, x: Tensor) -> Tensor:
    """A check of what is cheap to compute again in another kernel."""
    doubled = scale * 2
    aten._assert_async.msg(doubled - 1, "the scale is a half")
    return x * doubled


def of_everything_twice(x: Tensor) -> Tensor:
    """Both fail for a NaN: the first is what is told."""
    aten._assert_async.msg((x == x).all(), "x holds a NaN")
    aten._assert_async.msg(x.sum() <= 1e30, "the sum is large")
    return x + 1


ROWS, BAD_ROWS = torch.rand(64, 48), torch.rand(64, 48)
BAD_ROWS[3, 5] = -1
NAN_ROWS = BAD_ROWS.abs()
NAN_ROWS[3, 5] = float("nan")
CASES = [
    (of_sums, (ROWS,), (BAD_ROWS,), 'not "negative"\\\n… ?'),
    (of_a_scalar, (torch.tensor(2.0), ROWS), (torch.tensor(0.5), ROWS), "the scale is a half"),
    (of_everything_twice, (ROWS,), (NAN_ROWS,), "x holds a NaN"),
]


def in_triton(kernel: RenderedKernel, compilation: Generated, inputs: tuple[Tensor, ...]) -> None:
    layouts, given = compilation.schedule.graph.buffers, compilation.schedule.graph.inputs
    known = dict(zip(given, inputs, strict=True))
    interpret(
        kernel,
        [known[name].clone() if name in known else empty_of(layouts[name]) for name in kernel.parameters],
    )


@pytest.mark.parametrize(("function", "good", "bad", "message"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_a_check_fails_as_in_eager_mode(
    function: Callable[..., Any], good: tuple[Tensor, ...], bad: tuple[Tensor, ...], message: str
) -> None:
    compilation = compile_program(function, *good)
    assert not any(isinstance(unit, ExternNode) for unit in compilation.schedule.units)
    call = build(compilation).executable.call
    checking = [kernel for kernel in compilation.triton.values() if "checks" in kernel.config]
    torch.testing.assert_close(call(list(good))[0], function(*good))
    for kernel in checking:
        in_triton(kernel, compilation, good)

    def kernels_on_bad_values() -> None:
        for kernel in checking:
            in_triton(kernel, compilation, bad)

    for fails in (
        lambda: function(*bad),
        lambda: call(list(bad)),
        lambda: run(compilation.loops, list(bad)),
        kernels_on_bad_values,
    ):
        with pytest.raises(RuntimeError) as raised:
            fails()
        assert str(raised.value) == message
    torch.testing.assert_close(call(list(good))[0], function(*good))


def test_a_check_joins_the_kernel_that_makes_its_condition() -> None:
    compilation = compile_program(of_sums, ROWS)
    (group,) = compilation.schedule.units
    assert isinstance(group, Group) and group.has_check and group.stored == {"sum_1"}


def test_assertions_are_left_in_what_triton_compiles() -> None:
    compilation = compile_program(of_sums, ROWS)
    (result,) = compiled_for_gpus(compilation)
    assert "__assertfail" in result.ptx and result.ptx.count("call.uni") <= 1


@pytest.mark.parametrize("bad", [-1, 5])
def test_one_hot_refuses_what_is_no_class(bad: int) -> None:
    compiled = torch.compile(lambda i: F.one_hot(i, 5) * 2, backend=fusionscope)
    classes = torch.tensor([0, 4, 2])
    torch.testing.assert_close(compiled(classes), F.one_hot(classes, 5) * 2)
    if torch.__version__ >= "2.12":  # before, its decomposition asked nothing
        with pytest.raises(RuntimeError, match="Class values must be"):
            compiled(torch.tensor([0, bad, 2]))


def test_a_condition_that_reads_nothing_stays_a_call() -> None:
    def function(x: Tensor) -> Tensor:
        aten._assert_async.msg(torch.ones((), dtype=torch.bool), "never")
        return x + 1

    compilation = compile_program(function, ROWS)
    assert [type(unit) for unit in compilation.schedule.units].count(ExternNode) == 1
    torch.testing.assert_close(build(compilation).executable.call([ROWS])[0], ROWS + 1)


ON_GPU = """
import torch
from compiler.backend import fusionscope

@torch.compile(backend=fusionscope)
def checked(x):
    torch.ops.aten._assert_async.msg((x >= 0).all(), "x is negative")
    return x.sqrt().sum(1)

x = torch.rand(512, 512, device="cuda")
torch.testing.assert_close(checked(x), x.sqrt().sum(1))
print("right", flush=True)
x[7, 9] = -1
try:
    checked(x)
    torch.cuda.synchronize()
except RuntimeError as error:
    print("assert" in str(error))
"""


@pytest.mark.gpu
def test_a_check_that_fails_on_a_gpu_ends_its_kernels() -> None:
    """In a process of its own: no kernel of that process runs after it, as in eager mode."""
    outcome = subprocess.run([sys.executable, "-c", ON_GPU], capture_output=True, text=True, check=False)
    assert outcome.stdout.split() == ["right", "True"] and "x is negative" in outcome.stderr

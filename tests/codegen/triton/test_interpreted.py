"""Kernels compute what eager does: run in Triton's interpreter on the CPU, judged by float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import triton.language as tl

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import H200, T4
from compiler.ir.nodes import Layout
from compiler.ir.ops import ops
from compiler.runtime.interpreter.interpreter import interpret, interpreting
from compiler.runtime.triton.source import grid_of
from compiler.schedule.group import Group, Space
from tests.codegen.triton import groups
from tests.codegen.triton.cases import all_cases
from tests.codegen.triton.groups import Case
from tests.codegen.triton.spec import violations
from tests.compile_program import call_interpreted, compile_program

CASES = all_cases()
#: Elements behind each output that a kernel must leave alone.
_GUARD = 64


def check(case: Case, result: dict[str, torch.Tensor]) -> None:
    exact = case.reference(**{n: t.double() if t.is_floating_point() else t for n, t in case.inputs.items()})
    for (name, whole), wanted in zip(result.items(), exact, strict=True):
        count = wanted.numel()
        assert not whole[count:].any(), f"{name}: written behind its end"
        got = whole[:count].reshape(wanted.shape)
        if not got.is_floating_point():
            assert torch.equal(got, wanted.to(got.dtype)), name
            continue
        # The inputs are exact in float64, so what is left are roundings of the kernel and of the store.
        epsilon = torch.finfo(got.dtype).eps
        scale = max(float(wanted.abs().nan_to_num(0, 0, 0).max()), 1e-30) if count else 1.0
        torch.testing.assert_close(
            got.double(), wanted.double(), rtol=8 * epsilon, atol=16 * epsilon * scale, equal_nan=True
        )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_kernel_gives_what_eager_gives(case: Case) -> None:
    kernel = render_triton(case.group, case.storage, H200)
    assert violations(kernel) == []
    check(case, interpreted(case, kernel))


def test_programs_that_run_as_one_give_the_same() -> None:
    together = 0
    for case in CASES:
        kernel = render_triton(case.group, case.storage, H200)
        if "* XBLOCK + tl.arange" in kernel.source and 1 < grid_of(kernel)() < 20:
            alone, at_once = interpreted(case, kernel), interpreted(case, kernel, 1 << 16)
            torch.testing.assert_close(at_once, alone)
            together += 1
    assert together >= 8


def interpreted(case: Case, kernel: RenderedKernel, points_at_once: int = 0) -> dict[str, torch.Tensor]:
    outputs = {
        name: torch.zeros(torch.Size(shape).numel() + _GUARD, dtype=case.storage[name])
        for name, shape in case.outputs.items()
    }
    tensors = {**case.inputs, **outputs}
    interpret(kernel, [tensors[name].contiguous() for name in kernel.parameters], points_at_once=points_at_once)
    return outputs


def test_after_the_block_the_language_is_the_compilers_again() -> None:
    case = CASES[0]
    before = (tl.load, tl.reduce, type(tl.sum).__call__)
    with pytest.raises(KeyError), interpreting():
        with interpreting():
            test_kernel_gives_what_eager_gives(case)
        test_kernel_gives_what_eager_gives(case)
        assert tl.load is not before[0]
        raise KeyError(case.name)
    assert (tl.load, tl.reduce, type(tl.sum).__call__) == before


def test_every_plan_occurs_in_the_table() -> None:
    plans = {
        str(render_triton(case.group, case.storage, device).config["plan"]) for case in CASES for device in (H200, T4)
    }
    assert plans == {"pointwise", "persistent", "looped", "split"}


def test_an_empty_tensor_launches_nothing() -> None:
    case = next(case for case in CASES if case.name == "pointwise_float32_0x3")
    assert grid_of(render_triton(case.group, case.storage, H200))() == 0


def test_the_wrong_number_of_tensors_is_refused() -> None:
    case = CASES[0]
    with pytest.raises(ValueError, match="takes 3 tensors, got 1"):
        interpret(render_triton(case.group, case.storage, H200), [torch.zeros(1)])


def test_accesses_of_rows_with_gaps_end_within_the_gap() -> None:
    """Rows of 50 elements, 56 apart: what stands in the gaps of the input, NaN here, is in no result."""
    rows, columns, step = 6, 50, 56
    x, (i,) = groups.dims("x", rows)
    r, (j,) = groups.dims("r", columns)
    b = groups.Builder(x, r)
    b.buffer("a", (rows, columns))
    at = i * step + j
    b.node("total", (rows,), torch.float32, lambda: ops.store("total", i, ops.reduce("sum", b.load("a", at))))
    b.node(
        "b", (rows, columns), torch.float32, lambda: ops.store("b", at, ops.mul(b.load("a", at), b.load("total", i)))
    )
    total, scaled = b.members
    scaled = replace(scaled, node=replace(scaled.node, layout=Layout((rows, columns), (step, 1), torch.float32)))
    group = Group("gaps", Space(x, r), (total, scaled), frozenset({"b"}))
    kernel = render_triton(group, b.storage, H200)
    assert kernel.source.count("(r0 < 52)") == 2
    a, result = torch.full((rows, step), torch.nan), torch.zeros(rows * step + _GUARD)
    a[:, :columns] = torch.randn(rows, columns)
    tensors = {"a": a, "b": result}
    interpret(kernel, [tensors[name].flatten() for name in kernel.parameters])
    made, exact = result[: rows * step].view(rows, step), a[:, :columns].double()
    wanted = exact * exact.sum(1, keepdim=True)
    torch.testing.assert_close(made[:, :columns].double(), wanted, rtol=1e-5, atol=1e-5)
    assert not made[:, 52:].any() and not result[rows * step :].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_zeros_have_the_signs_of_eagers(dtype: torch.dtype) -> None:
    """Triton's `-x` is `0 - x`, and it makes 0.0 of a literal -0.0."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return -x, x + -0.0, torch.where(x > 0, x, -0.0), torch.full_like(x, -0.0)

    x = torch.tensor([0.0, -0.0, 1.0, -2.0], dtype=dtype)
    for result, wanted in zip(call_interpreted(compile_program(program, x), [x]), program(x), strict=True):
        assert torch.equal(result, wanted) and torch.equal(result.signbit(), wanted.signbit())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_relu_of_negative_zero_is_zero_as_on_a_gpu(dtype: torch.dtype) -> None:
    """Eager gives -0.0 on a CPU and 0.0 on a GPU, in each dtype."""
    x = torch.tensor([-0.0, -1.0, 2.0, float("nan")], dtype=dtype)
    (result,) = call_interpreted(compile_program(torch.relu, x), [x])
    assert not result[:3].signbit().any() and torch.equal(result[:3], x[:3].clamp(min=0)) and result[3].isnan()


def test_a_sum_that_is_one_number_wraps_as_on_a_gpu() -> None:
    x = torch.full((4,), 2**31 - 1, dtype=torch.int32)
    compilation = compile_program(lambda x: x.sum(dtype=torch.int32), x)
    (total,) = call_interpreted(compilation, [x])
    assert torch.equal(total, x.sum(dtype=torch.int32))

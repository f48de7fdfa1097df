"""Sums of half types at computed indices: in which type they are formed, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.compile import Generated, build
from compiler.ir import interpret
from compiler.ir.nodes import LoopNode
from tests.compile_program import call_interpreted, compile_program, compiled_for_gpus

PLACES, WIDTH = 48, 24


def by_index_add(values: Tensor, place: Tensor) -> Tensor:
    return torch.zeros(PLACES, WIDTH, dtype=values.dtype).index_add(0, place, values)


def by_index_put(values: Tensor, place: Tensor) -> Tensor:
    return torch.ones(PLACES, WIDTH, dtype=values.dtype).index_put((place,), values, accumulate=True)


def by_scatter_add(values: Tensor, place: Tensor) -> Tensor:
    return torch.zeros(PLACES, WIDTH, dtype=values.dtype).scatter_add(0, place[:, None].expand_as(values), values)


def without_what_was(values: Tensor, place: Tensor) -> Tensor:
    return torch.ones(PLACES, WIDTH, dtype=values.dtype).index_reduce(0, place, values, "mean", include_self=False)


def into_a_table(values: Tensor, place: Tensor) -> Tensor:
    return torch.ops.aten.embedding_dense_backward(values, place, PLACES, -1, False)


def inputs(count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(count, WIDTH, generator=generator).to(dtype)
    return values, torch.randint(0, PLACES, (count,), generator=generator)


def types_of_sums(compilation: Generated) -> set[torch.dtype]:
    return {node.layout.dtype for node in compilation.loops.nodes if isinstance(node, LoopNode) and node.is_scatter}


@pytest.mark.parametrize("function", [by_index_add, by_index_put, by_scatter_add])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("count", [40, 150])
def test_where_few_values_meet_a_sum_is_as_exact_as_eagers(
    function: Callable[..., Tensor], dtype: torch.dtype, count: int
) -> None:
    """In C++, in Triton and by the interpreter of loops; each addition may round by half a unit of the largest sum."""
    values, place = inputs(count, dtype)
    compilation = compile_program(function, values, place)
    assert types_of_sums(compilation) == {dtype}
    exact = function(values.double(), place)
    most = int(torch.bincount(place).max())
    bound = (most + 1) * torch.finfo(dtype).eps / 2 * float(exact.abs().max() + values.abs().max())
    for results in (
        build(compilation).executable.call([values, place]),
        call_interpreted(compilation, [values, place]),
        interpret.run(compilation.loops, [values, place]),
    ):
        assert results[0].dtype == dtype
        assert float((results[0].double() - exact).abs().max()) <= bound


@pytest.mark.parametrize(
    ("function", "count", "target"),
    [
        (by_index_add, PLACES * 17, "sm_90"),
        (by_index_add, 150, "sm_80"),
        (into_a_table, 150, "sm_90"),
        (without_what_was, 150, "sm_90"),
    ],
    ids=["many meet", "a GPU without such additions", "eager's sums are wide", "a mean"],
)
def test_other_sums_stay_in_float32_until_they_are_done(
    function: Callable[..., Tensor], count: int, target: str
) -> None:
    values, place = inputs(count, torch.bfloat16)
    compilation = compile_program(function, values, place, target=target)
    assert torch.float32 in types_of_sums(compilation) and torch.bfloat16 not in types_of_sums(compilation)
    exact = function(values.double(), place)
    (found,) = call_interpreted(compilation, [values, place])
    torch.testing.assert_close(found.double(), exact, rtol=torch.finfo(torch.bfloat16).eps, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_neighbours_are_added_by_one_operation(dtype: torch.dtype) -> None:
    """Rows that begin at 16 bytes: eight numbers of a half type at a time."""

    def function(x: Tensor, place: Tensor, gradient: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, place, F.silu(gradient))

    x = torch.zeros(512, 1024, dtype=dtype)
    compilation = compile_program(function, x, torch.arange(512), torch.ones(512, 1024, dtype=dtype))
    texts = [result.ptx for result in compiled_for_gpus(compilation) if result.ptx]
    name = {torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
    assert any(f".add.noftz.v8.{name}" in text for text in texts)

"""Reductions of few elements are written out where they are read: one kernel, and the values of eager mode."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.compile import build
from compiler.schedule.group import Group
from tests.compile_program import compile_program

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "sum": (lambda x, w: x * w.square().sum().rsqrt(), (torch.randn(64, 48), torch.rand(4) + 1)),
    "mean of pairs": (
        lambda x, y: y + x.unflatten(-1, (-1, 2)).mean(-1)[:, ::3],
        (torch.randn(6, 36), torch.randn(6, 6)),
    ),
    "softmax of three": (lambda x, y: torch.softmax(x, 0)[1] * y, (torch.randn(3), torch.randn(64, 48))),
    "extreme values": (
        lambda x, w: (x - w.amin()) / (w.amax(0).max() - w.min() * 2 + 9),
        (torch.randn(64, 48), torch.randn(2, 3)),
    ),
    "product and truth": (
        lambda x, w: torch.where((w > 0).any(), x * w.prod(), x),
        (torch.randn(64, 48), torch.randn(5)),
    ),
    "NaN": (lambda x, w: x + w.amax(), (torch.randn(64), torch.tensor([1.0, float("nan"), 2.0]))),
    "whole numbers": (lambda x, i: x[i.view(-1, 2).sum(1)] * 2, (torch.randn(64, 48), torch.randint(0, 32, (12,)))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_short_reduction_goes_where_it_is_read(name: str) -> None:
    function, inputs = PROGRAMS[name]
    compilation = compile_program(function, *inputs, disable=["batch"])
    (kernel,) = compilation.schedule.units
    assert isinstance(kernel, Group) and not kernel.space.r
    given = dict(zip(signature(function).parameters, inputs, strict=True))
    ordered = [given[str(name)] for name in compilation.schedule.graph.inputs]
    (result,) = build(compilation).executable.call(ordered)
    torch.testing.assert_close(result, function(*inputs), equal_nan=True)


def test_a_long_one_is_reduced_once() -> None:
    compilation = compile_program(lambda x, w: x * w.sum(), torch.randn(64, 48), torch.randn(9))
    assert len(compilation.schedule.units) == 2


def test_a_short_reduction_with_two_readers_that_reduce_it_is_computed_in_both() -> None:
    """Distances of all pairs of points in several clouds, each one's nearest both ways: none is stored."""

    def both_ways(a: Tensor, b: Tensor) -> Tensor:
        apart = (a[:, :, None] - b[:, None]).square().sum(-1)
        return apart.amin(2).mean(-1) + apart.amin(1).mean(-1)

    a, b = torch.randn(4, 900, 3), torch.randn(4, 700, 3)
    compilation = compile_program(both_ways, a, b)
    (apart,) = {d.about for d in compilation.schedule.decisions if d.reason == "fused.recompute"}
    assert apart is not None and compilation.memory.buffers[apart].fate == "register"
    (result,) = build(compilation).executable.call([a, b])
    torch.testing.assert_close(result.double(), both_ways(a.double(), b.double()), rtol=1e-6, atol=1e-6)


def test_a_short_reduction_that_is_an_output_is_stored_all_the_same() -> None:
    def apart_and_nearest(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        apart = (a[:, :, None] - b[:, None]).abs().amax(-1)
        return apart, apart.amin(2), apart.amin(1)

    a, b = torch.randn(3, 70, 2), torch.randn(3, 50, 2)
    results = build(compile_program(apart_and_nearest, a, b)).executable.call([a, b])
    for result, expected in zip(results, apart_and_nearest(a, b), strict=True):
        torch.testing.assert_close(result, expected)

"""Numbers too small for a type's normal range, on a CPU: kernels keep those that eager mode keeps.

That is so too where the processor counts them as zero and the type is narrower than what it computes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.fixture(params=[False, True], ids=["kept", "flushed"])
def flushes(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the processor takes such numbers for zero."""
    if not torch.set_flush_denormal(request.param):
        pytest.skip("this processor cannot take them for zero")
    yield request.param
    torch.set_flush_denormal(False)


def _around_the_smallest(dtype: torch.dtype) -> Tensor:
    """Normal and smaller ones, and zeros, of both signs."""
    smallest = torch.finfo(dtype).tiny
    sizes = torch.tensor([smallest * factor for factor in (4, 2, 1.5, 1)], dtype=torch.float64)
    steps = smallest / 2.0 ** torch.arange(1, 11, dtype=torch.float64)
    values = torch.cat([sizes, steps, torch.zeros(2)])
    return torch.stack([values, -values]).flatten().to(dtype)


def _compiled(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    torch._dynamo.reset()
    compiled: Callable[[Tensor], Tensor] = torch.compile(function, backend=fusionscope)
    return compiled


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_is_eagers(dtype: torch.dtype, flushes: bool) -> None:
    x = _around_the_smallest(dtype)

    def computed(x: Tensor) -> Tensor:
        return torch.stack([x + x.flip(0), -x, torch.maximum(x, x.flip(0)), x.abs(), torch.where(x < 0, x, -x)])

    given, wanted = _compiled(computed)(x), computed(x)
    assert torch.equal(given, wanted) and torch.equal(given.signbit(), wanted.signbit())


@pytest.mark.parametrize("flipped", [False, True], ids=["in order", "anywhere"])
def test_small_halves_are_normal_numbers_of_what_they_are_computed_in(flipped: bool, flushes: bool) -> None:
    """A conversion by a multiplication passes a number that float32 has no normal form for."""
    x = torch.arange(0, 2048, dtype=torch.int16).view(torch.float16)

    def widened(x: Tensor) -> Tensor:
        return (x.flip(0) if flipped else x).float() * 2.0**14

    assert torch.equal(_compiled(widened)(x), widened(x))


@pytest.mark.parametrize("function", [torch.expm1, F.elu, F.celu, torch.tanh, torch.sin], ids=lambda f: f.__name__)
def test_functions_that_are_straight_at_zero_keep_the_smallest_normal_numbers(
    function: Callable[[Tensor], Tensor], flushes: bool
) -> None:
    x = torch.tensor([1.0, 1.5, 1.9, -1.0, -1.5, -1.9]) * torch.finfo(torch.float32).tiny
    torch.testing.assert_close(_compiled(function)(x), x, rtol=2 * torch.finfo(torch.float32).eps, atol=0)


@pytest.mark.parametrize("function", [torch.sigmoid, F.silu, torch.exp, F.softplus], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_results_that_become_too_small_are_float64s(dtype: torch.dtype, function: Callable[[Tensor], Tensor]) -> None:
    """As far as eager mode has them: it has no sigmoid where e^-x is larger than any float32."""
    x = torch.linspace(-88.7, -80.0, 300).to(dtype)
    limits = torch.finfo(dtype)
    spacing = limits.tiny * limits.eps  # of the numbers below the normal ones
    # A sigmoid's last place, times x.
    allowed = 4 * limits.eps * function(x.double()).abs() + 100 * max(spacing, 2.0**-149)
    assert ((_compiled(function)(x).double() - function(x.double())).abs() <= allowed).all()

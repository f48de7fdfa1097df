"""Approximations stand where their error cannot be seen, and have no larger one; comparisons stay what they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.codegen.triton.values.helpers import FAST_FUNCTIONS
from compiler.runtime.interpreter.interpreter import interpret as run_interpreted
from compiler.schedule.group import Group
from compiler.schedule.program.fast_math import LARGEST_ERROR, fast_statements
from compiler.schedule.program.statements import statements_of
from compiler.schedule.tiles.text import length_of
from tests.compile_program import call_interpreted, compile_program

HALF = torch.bfloat16


def one_plus_erf(x: Tensor) -> Tensor:
    return 1 + torch.erf(x)


def one_plus_tanh(x: Tensor) -> Tensor:
    return torch.tanh(x) + 1


def texts_of(function: Callable[..., Tensor], *inputs: Tensor) -> str:
    return "".join(kernel.source for kernel in compile_program(function, *inputs).triton.values())


@pytest.mark.parametrize(
    "function, low, high",
    [(one_plus_erf, -4.4, 9.0), (one_plus_tanh, -40.0, 40.0), (torch.exp, -80.0, 80.0), (torch.sigmoid, -80.0, 80.0)],
)
def test_a_form_is_right_to_far_more_digits_than_a_half_type_has(
    function: Callable[[Tensor], Tensor], low: float, high: float
) -> None:
    (kernel,) = compile_program(function, torch.zeros(1 << 14, dtype=HALF)).triton.values()
    assert any(f"= {name}(" in kernel.source for name in FAST_FUNCTIONS)
    # The kernel is given float32, so that what the store would round off is seen.
    x, out = torch.linspace(low, high, 1 << 14), torch.zeros(1 << 14)
    run_interpreted(kernel, [x, out])
    exact = torch.erfc(-x.double()) if function is one_plus_erf else 2 * torch.sigmoid(2 * x.double())
    exact = function(x.double()) if function in (torch.exp, torch.sigmoid) else exact
    torch.testing.assert_close(out.double(), exact, rtol=LARGEST_ERROR, atol=0)


@pytest.mark.parametrize("function", [one_plus_erf, one_plus_tanh, torch.exp, torch.sigmoid])
def test_a_form_has_the_same_limits(function: Callable[[Tensor], Tensor]) -> None:
    inf = float("inf")
    x = torch.tensor([0.0, -0.0, inf, -inf, float("nan"), 3e38, -3e38, 1e-30], dtype=HALF)
    (ours,) = call_interpreted(compile_program(function, x), [x])
    torch.testing.assert_close(ours, function(x), rtol=0, atol=0, equal_nan=True)


def gradient_of_gelu(given: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    gradient = torch.ops.aten.gelu_backward(given, x, approximate="tanh")
    return gradient, gradient.sum(0)


def gradient_of_tanh(x: Tensor) -> Tensor:
    return 1 - torch.tanh(x) ** 2


@pytest.mark.parametrize("function", [gradient_of_gelu, gradient_of_tanh, lambda x: 3 - gradient_of_tanh(x)])
def test_gradients_of_tanh_use_its_approximation(function: Callable[..., Tensor | tuple[Tensor, ...]]) -> None:
    both = torch.randn(64, 64, dtype=HALF), torch.linspace(-6, 6, 1 << 12, dtype=HALF).view(64, 64)
    inputs = both[-function.__code__.co_argcount :]
    compilation = compile_program(function, *inputs)
    text = "".join(kernel.source for kernel in compilation.triton.values())
    assert "= one_plus_tanh(" in text and "libdevice.tanh(" not in text
    result = function(*(x.double() for x in inputs))
    exact = result if isinstance(result, tuple) else (result,)
    for ours, wanted in zip(call_interpreted(compilation, list(inputs)), exact, strict=True):
        # Half of the last bit, and what terms that cancel leave of the function's error.
        torch.testing.assert_close(ours.double(), wanted, rtol=2.0**-8, atol=1e-5)


@pytest.mark.parametrize(
    "function, dtype",
    [
        (gradient_of_tanh, torch.float32),
        (lambda x: torch.tanh(x) ** 2, HALF),
        (lambda x: (1 - torch.tanh(x) ** 2) * torch.tanh(x), HALF),
        (lambda x: (1 - torch.tanh(x) ** 2).float(), HALF),
        (lambda x: torch.log(1 - torch.tanh(x) ** 2), HALF),
    ],
)
def test_other_squares_of_tanh_keep_it(function: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    assert "one_plus_tanh" not in texts_of(function, torch.randn(64, 256, dtype=dtype))


def erf_twice(x: Tensor) -> Tensor:
    erf = torch.erf(x)
    return (1 + erf) * erf


@pytest.mark.parametrize(
    "function, dtype, form",
    [
        (F.gelu, HALF, "one_plus_erf"),
        (F.gelu, torch.float16, "one_plus_erf"),
        (lambda x: F.gelu(x, approximate="tanh"), HALF, "one_plus_tanh"),
        (F.silu, HALF, "quick_sigmoid"),
        (lambda x: F.softmax(x, -1), HALF, "quick_exp"),
        (lambda x: x / (1 + torch.exp(-x)), HALF, "quick_exp"),
        (F.gelu, torch.float32, None),
        (lambda x: F.gelu(x).float(), HALF, None),
        (lambda x: F.gelu(x) - x, HALF, None),
        (lambda x: F.gelu(x).sum(-1), HALF, None),
        (lambda x: torch.where(torch.exp(x) > 1, x, -x), HALF, None),
        (erf_twice, HALF, None),
    ],
)
def test_a_form_stands_where_only_half_types_see_it(
    function: Callable[[Tensor], Tensor], dtype: torch.dtype, form: str | None
) -> None:
    text = texts_of(function, torch.randn(64, 256, dtype=dtype))
    assert {name for name in FAST_FUNCTIONS if f"{name}(" in text} == ({form} if form else set())


@pytest.mark.parametrize("function", [torch.div, lambda x, y: x * y.reciprocal()])
def test_a_quick_quotient_is_as_long_for_a_tile_as_an_exact_one(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    """A tile goes by the length of the text, and an op that it did not know would count as one instruction."""
    (quick,) = compile_program(function, *torch.ones(2, 1 << 12, dtype=HALF)).schedule.units
    assert isinstance(quick, Group)
    statements = fast_statements(quick)
    assert any(s.op.startswith("quick_") for s in statements)
    assert length_of(statements) >= length_of(statements_of(quick))

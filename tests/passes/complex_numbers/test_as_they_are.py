"""Complex numbers that no loop computes with go through library calls, and are copied by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.compile import build
from tests.compile_program import compile_program

NAN, INFINITY = float("nan"), float("inf")


PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinite": torch.isfinite,
    "nan_to_num": torch.nan_to_num,
    "view_copy": lambda z: torch.view_copy(z, (4, 2)),
    "flip of nothing": lambda z: z[:0].flip(0),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_is_what_eager_gives(program: Callable[[torch.Tensor], torch.Tensor]) -> None:
    parts = [
        (0.0, NAN),
        (0.0, INFINITY),
        (NAN, 0.0),
        (-INFINITY, 1.0),
        (1.0, 2.0),
        (-0.0, 0.0),
        (3.0, -INFINITY),
        (1.0, 1.0),
    ]
    z = torch.tensor([complex(*pair) for pair in parts]).view(2, 4)
    (result,) = build(compile_program(program, z)).executable.call([z])
    torch.testing.assert_close(result, program(z), equal_nan=True)
    assert result.untyped_storage().data_ptr() != z.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    ("program", "dtype"),
    [
        (lambda x: torch.view_as_complex(x[1:].unflatten(-1, (-1, 2))), torch.float32),
        (lambda w: (torch.view_as_real(w).flatten(-2), w.real), torch.complex64),
    ],
    ids=["view_as_complex", "view_as_real"],
)
def test_views_of_an_input_of_any_size_are_views_with_gradients(
    program: Callable[..., Any], dtype: torch.dtype
) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="fusionscope", dynamic=True)
    for wants_gradient in (False, True):
        for size in (4, 5):
            x = torch.randn(size, 6, dtype=dtype, requires_grad=wants_gradient)
            ours, eager = (result if isinstance(result, tuple) else (result,) for result in (compiled(x), program(x)))
            for mine, wanted in zip(ours, eager, strict=True):
                assert mine.data_ptr() == wanted.data_ptr()
                torch.testing.assert_close(mine, wanted)
            if wants_gradient:
                gradients = [torch.autograd.grad([y.abs().sum() for y in results], x) for results in (ours, eager)]
                torch.testing.assert_close(*gradients)


def test_inputs_whose_signs_are_only_noted_are_read_and_written_as_eager_does() -> None:
    """`z.conj().imag` has the other sign in memory than its reader gets."""

    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="fusionscope", dynamic=False)
    for negated in (True, False):
        mine, wanted = (torch.arange(6).to(torch.complex64) * (1 - 2j) for _ in range(2))
        ours, eager = (f((z.conj() if negated else z).imag) for f, z in ((compiled, mine), (program, wanted)))
        torch.testing.assert_close(ours, eager)
        torch.testing.assert_close(mine, wanted)


@pytest.mark.parametrize("is_given_negated", [False, True], ids=["plain gradient", "negated gradient"])
@pytest.mark.parametrize("is_result_negated", [False, True], ids=["plain result", "negated result"])
def test_gradients_whose_signs_are_only_noted_are_read_as_eager_does(
    is_result_negated: bool, is_given_negated: bool
) -> None:
    """Of neither does a guard tell: the result says what the gradient is taken for, and a caller may give any."""

    def program(x: torch.Tensor) -> torch.Tensor:
        z = torch.view_as_complex(x) * 2
        return z.conj().imag if is_result_negated else z.imag * 3

    x, given = torch.randn(4, 2, requires_grad=True), torch.arange(1.0, 5)
    if is_given_negated:
        given = torch._neg_view(given)
    torch._dynamo.reset()
    ours, eager = torch.compile(program, backend="fusionscope")(x), program(x)
    assert ours.is_neg() == is_result_negated
    torch.testing.assert_close(*(torch.autograd.grad(result, x, given) for result in (ours, eager)))


def test_a_view_with_other_signs_shares_the_memory_of_the_result_that_it_is_of() -> None:
    def program(z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        w = z * 2
        return w, w.conj().imag[1:]

    z = torch.randn(4, 3, dtype=torch.complex64)
    whole, view = build(compile_program(program, z)).executable.call([z])
    assert view.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    assert view.is_neg() and torch.equal(view, program(z)[1])


def test_a_complex_number_that_is_none_reaches_a_library_call() -> None:
    """Python prints it as a formula of names that there are not."""
    z = torch.tensor([complex(NAN, 1), complex(1, 2)])

    def program(z: torch.Tensor) -> torch.Tensor:
        return torch.where(z.isnan(), z, complex(NAN, -INFINITY))

    torch._dynamo.reset()
    result = torch.compile(program, backend="fusionscope")(z)
    torch.testing.assert_close(torch.view_as_real(result), torch.view_as_real(program(z)), equal_nan=True)

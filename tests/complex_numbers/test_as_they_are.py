"""Complex numbers that no loop computes with go through library calls, and are copied by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.compile_program import compile_program

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    "program",
    [torch.isnan, torch.isinf, torch.isfinite, torch.nan_to_num, lambda z: torch.view_copy(z, (4, 2)), lambda z: z[:0].flip(0)],
    ids=["isnan", "isinf", "isfinite", "nan_to_num", "view_copy", "flip of nothing"],
)  # fmt: skip
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
    (result,) = compile_program(program, z).build().call([z])
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

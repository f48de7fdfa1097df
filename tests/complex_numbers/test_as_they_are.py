"""Complex numbers that no loop computes with go through library calls, and are copied by one."""

from __future__ import annotations

from collections.abc import Callable

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

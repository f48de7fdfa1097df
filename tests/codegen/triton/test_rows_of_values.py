"""Pointwise kernels that find several values by row take a piece of one row at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from compiler.runtime.checking.verify import relative_error
from compiler.schedule.tiles import pointwise
from tests.compile_program import call_interpreted, compile_program


def gradient_of_logits(logits: Tensor, largest: Tensor, log: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Four values for each row, as a cross entropy's gradient has."""
    exponentials = torch.exp(logits.float() - largest[:, None] - log[:, None])
    return (exponentials * scale[:, None] + shift[:, None]).bfloat16()


def norm(logits: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """Two values for each row."""
    return ((logits.float() - mean[:, None]) * scale[:, None]).bfloat16()


def inputs(rows: int, columns: int, values: int) -> list[Tensor]:
    return [torch.randn(rows, columns).bfloat16(), *(torch.randn(rows) for _ in range(values))]


def text(columns: int, is_long: bool = True, values: int = 4) -> str:
    function = gradient_of_logits if values == 4 else norm
    (kernel,) = compile_program(function, *inputs(1056 if is_long else 64, columns, values)).triton.values()
    return kernel.source


def test_values_of_a_row_are_loaded_once_for_a_piece_of_it() -> None:
    source = text(4104)
    assert "x0 = (pid // 3)" in source and "x_index" not in source


@pytest.mark.parametrize(
    ("columns", "is_long", "values"),
    [(4105, True, 4), (4104, True, 2), (4104, False, 4)],
    ids=["rows that are no whole pieces", "few values", "few elements"],
)
def test_other_kernels_go_through_all_rows_by_one_axis(columns: int, is_long: bool, values: int) -> None:
    assert "x_index" in text(columns, is_long, values)


def test_pieces_of_rows_are_computed_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rest at the end of each row."""
    for name, value in {"_OF_A_ROW": 64, "_LONG_ROW": 64, "_PROGRAMS_OF_ROWS": 0}.items():
        monkeypatch.setattr(pointwise, name, value)
    given = inputs(37, 136, 4)
    compilation = compile_program(gradient_of_logits, *given)
    (kernel,) = compilation.triton.values()
    assert "x0 = (pid // 3)" in kernel.source
    (result,) = call_interpreted(compilation, given)
    assert relative_error(result, gradient_of_logits(*(one.double() for one in given))) < 1e-2

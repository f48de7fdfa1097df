"""Positions of extremes in rows that a kernel goes through block by block, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from compiler.runtime.interpreter.interpreter import interpret
from tests.compile_program import compile_program

Tensor = torch.Tensor


@pytest.mark.parametrize("wanted", [torch.argmax, torch.argmin], ids=["argmax", "argmin"])
def test_the_first_of_equals_and_of_nans_is_found(wanted: object) -> None:
    """Rows of equal numbers, of nothing but infinities, with a NaN in two blocks, and with one extreme."""
    x = torch.zeros(4, 9001)
    x[1] = float("-inf") if wanted is torch.argmax else float("inf")
    x[2, 5000], x[2, 8999] = float("nan"), float("nan")
    x[3, 7000], x[3, 3000] = 2.0, -2.0
    compilation = compile_program(lambda x: wanted(x, -1), x)  # type: ignore[operator]
    (kernel,) = compilation.triton.values()
    assert kernel.config["plan"] in ("looped", "split")
    found = torch.zeros(4, dtype=torch.int64)
    interpret(kernel, [x, found])
    assert found.tolist() == wanted(x, -1).tolist()  # type: ignore[operator]

"""What stands in for an operator in float64 gives what the operator gives in its own dtypes."""

from __future__ import annotations

import pytest
import torch

from compiler.capture.exact_operators import IN_ANY_DTYPE

#: Shapes of both operands, where the groups lie along rows, columns, and the inner dimension; and of whole products.
SHAPES = {
    "rows": ((16, 8), (3, 8, 12)),
    "columns": ((3, 8, 8), (8, 16)),
    "inner": ((8, 16), (16, 12)),
    "batch": ((3, 8, 8), (3, 8, 12)),
}


@pytest.mark.parametrize("form", SHAPES)
def test_products_of_groups_are_those_of_torch(form: str) -> None:
    operator = torch.ops.aten._grouped_mm.default
    a, b = (torch.randn(shape) for shape in SHAPES[form])
    ends = None if form == "batch" else torch.tensor([4, 4, 16], dtype=torch.int32)
    expected = operator(a, b, ends)
    found = IN_ANY_DTYPE[operator](a.double(), b.double(), ends)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), expected, rtol=1e-5, atol=1e-5)

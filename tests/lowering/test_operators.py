"""Every operator of the table, lowered and interpreted, equals eager."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.checks import check, fallbacks
from tests.lowering.operators import Operator
from tests.lowering.tables import OPERATORS


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_lowered_operator_equals_eager(operator: Operator) -> None:
    ran = 0
    for dtype in operator.dtypes:
        samples = operator.samples(dtype)
        # Layouts are the same work for every dtype: one dtype sees them all, the others three of each.
        for inputs in samples if dtype is operator.dtypes[0] or len(samples) < 4 else [*samples[:2], samples[-1]]:
            graph = check(operator.name, operator.function, inputs)
            if graph is None:
                continue
            ran += 1
            if not operator.falls_back:
                assert not fallbacks(graph)
    assert ran, "eager takes none of the samples"


def test_names_of_rows_are_unique() -> None:
    names = [operator.name for operator in OPERATORS]
    assert len(set(names)) == len(names)
    assert torch.get_default_dtype() == torch.float32

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
    for inputs in operator.calls():
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

"""Every row of every table of operators: what lowering and both code generators are tested with."""

from __future__ import annotations

from tests.lowering import operators, operators_scatter, operators_shapes, operators_special

OPERATORS = [
    *operators.OPERATORS,
    *operators_shapes.OPERATORS,
    *operators_scatter.OPERATORS,
    *operators_special.OPERATORS,
]

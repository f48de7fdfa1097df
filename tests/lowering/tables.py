"""Every row of every table of operators: what lowering and both code generators are tested with."""

from __future__ import annotations

from tests.lowering import (
    operators,
    operators_embeddings,
    operators_float8,
    operators_images,
    operators_lists,
    operators_masks,
    operators_pooling,
    operators_quantised,
    operators_scans,
    operators_scatter,
    operators_shapes,
    operators_special,
)

#: Operators of elements, and those that are about where elements stand: each half takes about as long to test.
TABLES_OF_NUMBERS = (operators, operators_float8, operators_quantised)
TABLES_OF_PLACES = (
    operators_shapes,
    operators_lists,
    operators_pooling,
    operators_scatter,
    operators_masks,
    operators_embeddings,
    operators_special,
    operators_scans,
    operators_images,
)
OF_NUMBERS = [operator for table in TABLES_OF_NUMBERS for operator in table.OPERATORS]
OF_PLACES = [operator for table in TABLES_OF_PLACES for operator in table.OPERATORS]
OPERATORS = OF_NUMBERS + OF_PLACES

"""Every row of every table of operators: what lowering and both code generators are tested with."""

from __future__ import annotations

from tests.lowering import (
    operators,
    operators_counting,
    operators_embeddings,
    operators_float8,
    operators_grids,
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

TABLES = (
    operators,
    operators_shapes,
    operators_lists,
    operators_pooling,
    operators_scatter,
    operators_masks,
    operators_counting,
    operators_embeddings,
    operators_float8,
    operators_quantised,
    operators_special,
    operators_scans,
    operators_images,
    operators_grids,
)
OPERATORS = [operator for table in TABLES for operator in table.OPERATORS]

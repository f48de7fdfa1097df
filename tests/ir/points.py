"""The value of an index at a point of its loops."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.ir.index import Dim, Index


def value_at(index: Index, point: Mapping[Dim, int]) -> int:
    """By Python's own arithmetic: the text of an index is Python."""
    return int(eval(str(index), {}, {dim.name: value for dim, value in point.items()}))

"""Advanced indexing, for reading and for writing: which element of x is element p of `x[i, :, j]`.

The index tensors broadcast together. Their dimensions stand where the first of them does if the indices are neighbours
(`x[:, i, j]`), else in front (`x[i, :, j]`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.ir.size import Integer, symbols_of
from compiler.lowering.promotion import broadcast_shapes
from compiler.lowering.values import Position, TensorValue, broadcast

_LARGEST = torch.iinfo(torch.int32).max

#: Index tensors of these dtypes choose by truth; uint8 is a rule from the time before PyTorch had bool.
TRUTHS = (torch.bool, torch.uint8)


def wrapped_index(value: Any, size: Integer) -> Index:
    """A loaded integer as an index in a dimension of `size`, counted from the end where it is negative.

    Eager raises for an index outside of the dimension; a kernel cannot, so it takes another index and never touches
    memory outside of the buffer. No program depends on which one that is, so the lower half of a number is enough
    where the dimension is that short: a GPU's registers have 32 bits, and a CPU's vectors hold more of them."""
    value = value.to(torch.int32 if isinstance(size, int) and size < _LARGEST else torch.int64)
    from_end = value + size
    wrapped = ops.where(value < 0, from_end, value)
    inside = ops.minimum(ops.maximum(wrapped, 0), size - 1)
    if any(symbol.is_late for symbol in symbols_of(size)):
        inside = ops.maximum(inside, 0)  # where there is no element, the index of the first is kept readable
    index: Index = ops.indirect(inside, size)
    return index


def index_in(value: Any, size: Integer) -> tuple[Index, Any]:
    """A loaded integer as an index in a dimension of `size`, counted from the end where it is negative, and whether it
    is one."""
    value = value.to(torch.int64)
    wrapped = ops.where(value < 0, value + size, value)
    is_inside = (wrapped >= 0) & (wrapped < size)
    index: Index = ops.indirect(ops.where(is_inside, wrapped, 0), size)
    return index, is_inside


@dataclass(frozen=True)
class AdvancedIndex:
    """`parts` are the index tensors by the dimension that each indexes, broadcast together; `shape` is that of the
    elements that they choose, `at` where their common dimensions stand in it, `common` how many those are."""

    shape: tuple[Integer, ...]
    parts: dict[int, TensorValue]
    rank: int
    at: int
    common: int

    @classmethod
    def of(cls, x: TensorValue, indices: Sequence[TensorValue | None]) -> AdvancedIndex:
        """None stands for a dimension that is taken whole, as do those after the last index."""
        given = {dim: index for dim, index in enumerate(indices) if index is not None}
        common = broadcast_shapes(*given.values())
        first, last = min(given), max(given)
        at = first if len(given) == last - first + 1 else 0
        whole = [x.shape[dim] for dim in range(x.rank) if dim not in given]
        parts = {dim: broadcast(index, common) for dim, index in given.items()}
        return cls((*whole[:at], *common, *whole[at:]), parts, x.rank, at, len(common))

    def position_in(self, position: Position, index_of: Callable[[int, Any], Index]) -> Position:
        """The position in x of the element `position`; `index_of(dim, value)` makes a place of a loaded index."""
        shared = position[self.at : self.at + self.common]
        rest = iter((*position[: self.at], *position[self.at + self.common :]))
        return tuple(
            index_of(dim, self.parts[dim].load(shared)) if dim in self.parts else next(rest) for dim in range(self.rank)
        )

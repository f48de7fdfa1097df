"""The value of an FX node while it is lowered: a shape, a dtype, and how to read an element.

A view is a value that reads another at a position computed from its own, so views cost no node and no copy. A constant
(`full`, `arange`, a causal mask) is a value that reads no buffer: its formula is repeated where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compiler.ir.float8 import FLOAT8
from compiler.ir.formulas import Real
from compiler.ir.index import ZERO, Dim, Index
from compiler.ir.lazy import lazy
from compiler.ir.nodes import Layout
from compiler.ir.ops import ops
from compiler.ir.size import Integer, Size, hint, is_negative_stride, product

Position = tuple[Index, ...]


class CannotLower(Exception):
    """Raised by a lowering for a case that it does not cover; the operator becomes a library call, with the message as
    its reason."""


#: The dtypes that a loop body can hold. Others (complex, quantised, other kinds of float8) pass through library calls
#: and views.
SUPPORTED_DTYPES = frozenset({
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    *FLOAT8,
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class TensorValue:
    """A tensor of the graph: either a view of `buffer`, at element `offset(position)`, or a formula without reads."""

    shape: tuple[Integer, ...]
    dtype: torch.dtype
    buffer: str | None
    #: From a position of this tensor to the element's offset in the buffer; not used for a formula.
    offset: Callable[[Position], Index] | None = None
    #: From a position to the element of a tensor that reads no buffer, of dtype `compute_dtype(dtype)`.
    formula: Callable[[Position], Any] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> Integer:
        return product(self.shape)

    def load(self, position: Position, mask: Any = None) -> Any:
        """The element at `position`, in the dtype that bodies compute in. With a `mask`, memory is read only where it
        holds, so the position may lie outside the tensor elsewhere."""
        if self.dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute with {self.dtype}")
        if self.formula is not None:
            return self.formula(position)
        assert self.buffer is not None and self.offset is not None
        return ops.load(self.buffer, self.offset(position), self.dtype, mask)

    def view(self, shape: tuple[Integer, ...], position_of: Callable[[Position], Position]) -> TensorValue:
        """The tensor of `shape` whose element p is the element `position_of(p)` of this one."""
        offset, formula = self.offset, self.formula
        return TensorValue(
            shape,
            self.dtype,
            self.buffer,
            None if offset is None else lambda position: offset(position_of(position)),
            None if formula is None else lambda position: formula(position_of(position)),
        )

    def layout(self) -> Layout | None:
        """Its strides in the buffer, or None where no strides that a torch tensor could have describe it."""
        return self._layout

    @lazy
    def _layout(self) -> Layout | None:
        if self.offset is None:
            return None
        dims = tuple(Dim(f"p{axis}", size) for axis, size in enumerate(self.shape))
        offset = self.offset(tuple(Index.of(dim) for dim in dims))
        strides = tuple(offset.coefficient(dim) for dim in dims)
        if not offset.is_affine or any(map(is_negative_stride, (offset.offset, *strides))):
            return None
        return Layout(self.shape, strides, self.dtype, offset.offset)


def fixed(size: Integer) -> int:
    """A size that must be a number. Raises CannotLower where it is known only in a call."""
    if isinstance(size, int):
        return size
    raise CannotLower(f"it needs a number where there is a size that differs from call to call, {size.text}")


def of_buffer(buffer: str, layout: Layout) -> TensorValue:
    """The whole of a buffer."""
    return TensorValue(layout.shape, layout.dtype, buffer, offset=layout.index)


def constant(value: bool | int | float | Integer | Real, shape: tuple[Integer, ...], dtype: torch.dtype) -> TensorValue:
    """A tensor of one value, rounded to its dtype as a stored tensor would be."""
    if isinstance(value, Size | Real):
        return TensorValue(shape, dtype, None, formula=lambda position: ops.constant(value, dtype))
    rounded = torch.tensor(value, dtype=dtype).item() if dtype.is_floating_point else value
    return TensorValue(shape, dtype, None, formula=lambda position: ops.constant(rounded, dtype))


def broadcast(value: TensorValue, shape: tuple[Integer, ...]) -> TensorValue:
    """`value` as one operand of an elementwise operator whose result has `shape`."""
    if value.shape == shape:
        return value
    added = len(shape) - value.rank
    # Eager has compared the sizes already: one that is not the other's in the first call is one in every call.
    is_one = [
        size == 1 or hint(size) == 1 != hint(wanted) for size, wanted in zip(value.shape, shape[added:], strict=True)
    ]

    def position_of(position: Position) -> Position:
        return tuple(ZERO if one else index for one, index in zip(is_one, position[added:], strict=True))

    return value.view(shape, position_of)

"""Scans: running sums, products and extremes, one node each.

cumsum = aten.cumsum(x, 1)        for x0 < 64: for r0 < 512:  v = scan sum x[512*x0 + r0];  cumsum[512*x0 + r0] = v
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.nodes import Layout
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer, known
from compiler.lowering.builder import Builder
from compiler.lowering.reductions import sum_dtype
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant
from compiler.lowering.views import wrap

aten = torch.ops.aten

#: Whole numbers narrower than this are compared in it: GPUs scan registers, which have 32 bits.
NARROWEST = torch.int32

#: Scans that short rows are written out for.
WRITTEN_OUT = ("sum", "prod")

#: Scans whose chunks are joined by an operation on their results.
JOINED = {"sum": ops.add, "prod": ops.mul, "max": ops.maximum, "min": ops.minimum}

#: Elements of a row whose running sums and products are written out.
MOST_WRITTEN_OUT = 4

#: So few rows do not keep a GPU busy, and one that is shorter is done before a second kernel has begun.
MOST_ROWS, LONG_ROW = 128, 1 << 15

#: One row of half types, from which on two passes are quicker than one whose programs wait: on an H200 running sums of
#: 2^25 bfloat16 take 64 us in two passes, 69 in one; of shorter rows the launches count for more (not measured).
LONG_OF_HALVES = 1 << 23

#: Elements of a chunk, and how many chunks a large GPU wants to have.
SHORTEST_CHUNK, LONGEST_CHUNK, ENOUGH_CHUNKS = 256, 4096, 4096


def scan_along(
    build: Builder, kind: str, x: TensorValue, dim: int, dtype: torch.dtype, computed: torch.dtype, *, label: str = ""
) -> TensorValue:
    """The scan of `kind` of `x`, converted to `computed`, along one dimension, as a tensor of `dtype`."""
    at = wrap(dim, x.rank) if x.rank else 0

    def element(position: Position) -> Any:
        return ops.scan(kind, x.load(position).to(computed))

    if x.rank and kind in WRITTEN_OUT and x.shape[at] in range(1, MOST_WRITTEN_OUT + 1):
        return _written_out(build, kind, x, at, dtype, computed, label)
    if x.rank and 0 not in x.shape:
        chunk = chunk_for(x.shape, at)
        # In one pass where programs look back: see `schedule/tiles/look_back.py`. Of columns, whose neighbours lie side
        # by side in memory, a program takes several, and so little of each that it would read more of others' words.
        # Programs wait as long for elements of few bytes, of which a second pass takes less: see LONG_OF_HALVES.
        is_quick = chunk is not None and x.dtype.itemsize < 4 and prod(map(known, x.shape)) == known(x.shape[at])
        is_lone = is_quick and known(x.shape[at]) >= LONG_OF_HALVES
        is_one_pass = build.looks_back and build.result_layout(x.shape, dtype).stride[at] == 1 and not is_lone
        if chunk is not None and not is_one_pass:
            return _in_chunks(build, kind, x, at, chunk, dtype, computed)
        return build.scan(x.shape, dtype, at, element, label=label)
    return build.pointwise(x.shape, dtype, x.load, label=label)


def _written_out(
    build: Builder, kind: str, x: TensorValue, at: int, dtype: torch.dtype, computed: torch.dtype, label: str
) -> TensorValue:
    """The scan of rows of two, three or four elements as arithmetic at each point: it fuses with whatever reads it, and
    what stores a point of the row has no more of it than that point needs. The gradient of a product over two sides of
    a box is made of such scans."""
    length, join = known(x.shape[at]), JOINED[kind]
    # ATen adds and multiplies floats in it on a CPU, as a scan in C++ does.
    held = torch.float64 if build.device.type == "cpu" and computed.is_floating_point else computed

    def element(position: Position) -> Any:
        here = ops.index_value(position[at])
        values = [
            x.load((*position[:at], Index.number(number), *position[at + 1 :])).to(held) for number in range(length)
        ]
        total = values[0]
        for number, value in enumerate(values[1:], start=1):
            is_behind = here >= number
            total = ops.where(is_behind, join(total, value), total)
        return total.to(computed)

    return build.pointwise(x.shape, dtype, element, label=label)


def chunk_for(shape: Sequence[Integer], at: int) -> int | None:
    """How long the parts are in which rows along the dimension `at` are scanned side by side; None where each is
    scanned from end to end: where rows alone keep a GPU busy, are short, or have no such parts of one length."""
    length = shape[at]
    rows = [size for axis, size in enumerate(shape) if axis != at]
    if not isinstance(length, int) or not all(isinstance(size, int) for size in rows):
        return None
    count = prod(known(size) for size in rows)
    if count > MOST_ROWS or length < LONG_ROW:
        return None
    wanted = max(SHORTEST_CHUNK, min(LONGEST_CHUNK, length * count // ENOUGH_CHUNKS))
    fits = [size for size in range(SHORTEST_CHUNK, LONGEST_CHUNK + 1) if length % size == 0]
    return min(fits, key=lambda size: (abs(log2(size / wanted)), -size), default=None)


def _in_chunks(
    build: Builder, kind: str, x: TensorValue, at: int, chunk: int, dtype: torch.dtype, computed: torch.dtype
) -> TensorValue:
    """Few long rows, in three steps: the total of each chunk, the running total of those, and the scan of each chunk
    from what stands before it. Reads twice, but every multiprocessor reads.

    Blelloch, "Prefix Sums and Their Applications", 1990, section 1.3."""
    join = JOINED[kind]
    count, layout = known(x.shape[at]) // chunk, build.result_layout(x.shape, dtype)
    shape = (*x.shape[:at], count, *x.shape[at + 1 :])

    def load(position: Position, inside: Index) -> Any:
        return x.load((*position[:at], position[at] * chunk + inside, *position[at + 1 :])).to(computed)

    totals = build.reduction(
        shape, computed, (chunk,), lambda position, inner: ops.reduce(kind, load(position, inner[0])), label="totals"
    )
    before = build.scan(shape, computed, at, lambda position: ops.scan(kind, totals.load(position)), label="before")

    def element(position: Position) -> Any:
        block, inside = (*position[: at + 1], *position[at + 2 :]), position[at + 1]
        scanned = ops.scan(kind, load(block, inside))
        previous = before.load((*block[:at], (block[at] + (count - 1)) % count, *block[at + 1 :]))
        is_first = ops.index_value(block[at]) == 0
        return ops.where(is_first, scanned, join(previous, scanned))

    step = layout.stride[at]
    parts = Layout(
        (*shape[: at + 1], chunk, *shape[at + 1 :]),
        (*layout.stride[:at], step * chunk, step, *layout.stride[at + 1 :]),
        dtype,
    )
    made = build.scan(parts.shape, dtype, at + 1, element, layout=parts)
    return TensorValue(x.shape, dtype, made.buffer, layout.index)


def _total(kind: str) -> Callable[..., TensorValue]:
    """Sums and products: whole numbers in int64, as eager's, unless a dtype is asked for."""

    def lowering(build: Builder, x: TensorValue, dim: int, *, dtype: torch.dtype | None = None) -> TensorValue:
        result = sum_dtype(x, dtype)
        # Narrow whole numbers wrap around in the end as they would on the way.
        computed = compute_dtype(result) if result.is_floating_point else torch.int64
        if result == torch.bool:
            raise CannotLower("it sums truth values")
        return scan_along(build, kind, x, dim, result, computed)

    return lowering


lowers(aten.cumsum.default)(_total("sum"))
lowers(aten.cumprod.default)(_total("prod"))


def _extreme(kind: str) -> Callable[..., tuple[TensorValue, TensorValue]]:
    def lowering(build: Builder, x: TensorValue, dim: int) -> tuple[TensorValue, TensorValue]:
        is_narrow = not x.dtype.is_floating_point and x.dtype.itemsize < NARROWEST.itemsize
        computed = NARROWEST if is_narrow else compute_dtype(x.dtype)
        values = scan_along(build, kind, x, dim, x.dtype, computed, label="values")

        def record(position: Position) -> Any:
            """The position of an element that no one before it is ahead of: the last of equals, or of NaN."""
            value = x.load(position)
            is_record = value == values.load(position)
            if x.dtype.is_floating_point:
                is_record = is_record | ops.isnan(value)
            return ops.where(is_record, ops.index_value(position[wrap(dim, x.rank)]), 0)

        if not x.rank:
            return values, constant(0, (), torch.int64)
        records = build.pointwise(x.shape, torch.int64, record, label="records")
        return values, scan_along(build, "max", records, dim, torch.int64, torch.int64, label="indices")

    return lowering


lowers(aten.cummax.default)(_extreme("max"))
lowers(aten.cummin.default)(_extreme("min"))

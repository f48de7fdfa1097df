"""Operands of a product whose tiles the tensor memory accelerator can copy (sm_90 and later).

    x[m, k] at 4096 * m + k           a descriptor of 4096 x 4096, lines of tiles along k
    w[k, n] at k + 4096 * n           of the same, transposed: lines along k; the tile is transposed when it is there

A descriptor tells where a tensor lies; one thread then asks for a whole tile by its first row and column, and what is
outside of the tensor comes as zeros. It takes two dimensions, one of them without gaps, and lines that begin at
multiples of 16 bytes (CUDA Driver API, `cuTensorMapEncodeTiled`). Descriptors gain where they come with the launch;
made by each program they gain nothing (docs/performance/archive).
"""

from __future__ import annotations

from collections import Counter

from compiler.devices import Device
from compiler.ir.body import Instruction
from compiler.ir.index import Dim, Index
from compiler.schedule.group import Member
from compiler.schedule.products.loops import Product

#: The first GPUs that have such a unit.
LEAST_CAPABILITY = 90
#: Where a line may begin, in bytes, and how many lines there may be.
LINE_ALIGNMENT, MOST_LINES = 16, 2**31


def line_stride(index: Index, outer: Dim, inner: Dim, itemsize: int) -> int | None:
    """Elements from one line to the next of a tensor that is read at `index`, with a line for each value of `outer` and
    no gaps along `inner`. None where it does not lie so, or where no descriptor can be made of it."""
    if not index.is_affine or index.offset != 0 or index.dims != {outer, inner} or index.coefficient(inner) != 1:
        return None
    stride = index.coefficient(outer)
    is_fitting = isinstance(stride, int) and stride > 0 and stride * itemsize % LINE_ALIGNMENT == 0
    return stride if is_fitting and isinstance(outer.size, int) and outer.size < MOST_LINES else None  # type: ignore[return-value]


def may_be_described(product: Product, device: Device) -> bool:
    """Whether every operand is read as it lies, and by nothing else in the kernel, so that descriptors do for all."""
    matrices = product.matrices
    if device.kind != "cuda" or device.capability < LEAST_CAPABILITY or matrices.batch is not None:
        return False
    readers = Counter(access.buffer for member in product.members for access in member.body.reads)
    for member in product.products:
        left, right = _operands(member)
        # The left operand is the same of all products, and each of them reads it.
        for load, outer, times in ((left, matrices.rows, matrices.count), (right, matrices.columns, 1)):
            if load.op != "load" or load.operands or load.index is None or readers[load.buffer or ""] != times:
                return False
            if not is_described(load.index, outer, matrices.inner, matrices.dtype.itemsize):
                return False
    return True


def is_described(index: Index, outer: Dim, inner: Dim, itemsize: int) -> bool:
    """Whether a tensor lies in lines along one of the two loops, as `line_stride` has it."""
    strides = (line_stride(index, outer, inner, itemsize), line_stride(index, inner, outer, itemsize))
    return strides != (None, None)


def _operands(member: Member) -> tuple[Instruction, Instruction]:
    """What a product's sum multiplies."""
    instructions = member.body.instructions
    total = next(instruction for instruction in instructions if instruction.op == "reduce")
    left, right = instructions[total.operands[0]].operands
    return instructions[left], instructions[right]

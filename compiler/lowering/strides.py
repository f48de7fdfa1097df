"""What the strides of a tensor say of its memory: dense or with gaps, whole or a part, shared by two elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.nodes import Layout
from compiler.ir.size import Integer, Undecided, hint
from compiler.lowering.eager import EagerTensor


def _by_stride(shape: Sequence[Integer], stride: Sequence[Integer]) -> list[tuple[Integer, Integer]]:
    """Strides and sizes of the dimensions of more than one element, the innermost first."""
    pairs = [(step, size) for step, size in zip(stride, shape, strict=True) if size not in (0, 1)]
    return sorted(pairs, key=lambda pair: (hint(pair[0]), hint(pair[1])))


def is_dense(shape: Sequence[Integer], stride: Sequence[Integer]) -> bool:
    """Whether every element of the storage belongs to exactly one element of the tensor."""
    expected: Integer = 1
    if 0 in shape:
        return False
    for step, size in _by_stride(shape, stride):
        if step != expected:
            return False
        expected = expected * size
    return True


def is_whole(layout: Layout, buffer: Layout) -> bool:
    """Whether a view is of its whole buffer; the stride of a dimension of one element says nothing."""
    alike = (size == 1 or a == b for size, a, b in zip(buffer.shape, layout.stride, buffer.stride, strict=False))
    return layout.shape == buffer.shape and layout.offset == buffer.offset and all(alike)


def overlaps(shape: Sequence[Integer], stride: Sequence[Integer]) -> bool:
    """Whether two elements of the tensor may share memory (never so for strides that nest, gaps or not). What open
    sizes do not tell is as in the first call: a backward graph reads its inputs by eager's strides in any case."""
    reached: Integer = 0
    for step, size in _by_stride(shape, stride):
        try:
            is_shared = step <= reached
        except Undecided:
            is_shared = hint(step) <= hint(reached)
        if is_shared:
            return True
        reached = reached + step * (size - 1)
    return False


def with_eager_strides(layout: Layout, fake: EagerTensor | None) -> Layout:
    """The layout with eager's strides for dimensions of size one, whose strides no index can tell."""
    if fake is None or fake.shape != layout.shape:
        return layout
    is_free = layout.numel == 0
    strides = tuple(
        eager if size == 1 or is_free else own
        for size, own, eager in zip(layout.shape, layout.stride, fake.stride(), strict=True)
    )
    return replace(layout, stride=strides)

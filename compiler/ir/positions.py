"""Map points of a loop nest to positions in memory, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from compiler.ir.index import MOST_KEPT, ZERO, Dim, Index
from compiler.ir.size import Integer, Undecided, hint, is_negative_stride, product


def flatten(indices: Sequence[Index], sizes: Sequence[Integer]) -> Index:
    """Row-major position of a point:  flatten((i, j), (4, 512))  ->  512 * i + j."""
    position = ZERO
    for index, size in zip(indices, sizes, strict=True):
        position = position * size + index
    return position


def unflatten(position: Index, sizes: Sequence[Integer]) -> tuple[Index, ...]:
    """The point at a row-major position, the inverse of `flatten`."""
    result: list[Index] = []
    inner = product(sizes)
    for axis, size in enumerate(sizes):
        inner = inner // size if size != 0 else 0
        digit = position // inner if inner not in (0, 1) else position
        result.append(ZERO if size in (0, 1) else digit % size if axis else digit)
    return tuple(result)


def invert(index: Index, dims: Sequence[Dim], value: Index, is_masked: bool = False) -> dict[Dim, Index] | None:
    """Solve  index(dims) = value  for those of `dims` that `index` depends on, or None where it cannot be told.

    Solvable is an affine index with coefficients each of which exceeds all that the smaller ones can add up to, so that
    different points have different offsets, as every dense or sliced layout has, and every one that is read backwards:

        invert(512*d0 + d1, (d0, d1), v)        ->  {d0: v // 512, d1: v % 512}
        invert(512*d0 - d1 + 511, (d0, d1), v)  ->  {d0: v // 512, d1: 511 - v % 512}

    The answer is checked by putting it back: where `value` can leave the range of `index`, there is none, unless
    `is_masked` says that the caller guards against that (then the answer counts only where the guard holds).
    """
    answer = _inverted(index, tuple(dims), value, is_masked)
    return None if answer is None else dict(answer)


@lru_cache(maxsize=MOST_KEPT)
def _inverted(index: Index, dims: tuple[Dim, ...], value: Index, is_masked: bool) -> Mapping[Dim, Index] | None:
    try:
        return _invert(index, dims, value, is_masked)
    except Undecided:
        return None


def _invert(index: Index, dims: tuple[Dim, ...], value: Index, is_masked: bool) -> dict[Dim, Index] | None:
    if not index.is_affine:
        return None
    backwards = [dim for dim in dims if dim in index.dims and is_negative_stride(index.coefficient(dim))]
    if backwards:
        flipped = {dim: Index.number(dim.size - 1) - Index.of(dim) for dim in backwards}
        forwards = _invert(index.substitute(flipped), dims, value, is_masked)
        if forwards is None:
            return None
        return {dim: Index.number(dim.size - 1) - at if dim in flipped else at for dim, at in forwards.items()}
    ordered = sorted((dim for dim in dims if dim in index.dims), key=lambda dim: -hint(index.coefficient(dim)))
    answer: dict[Dim, Index] = {}
    remaining = value - index.offset
    for number, dim in enumerate(ordered):
        step = index.coefficient(dim)
        if is_masked and number == len(ordered) - 1 and step == 1:
            answer[dim] = remaining
            continue
        if step <= sum(index.coefficient(d) * (d.size - 1) for d in ordered[number + 1 :]):
            return None
        answer[dim] = remaining // step
        remaining = remaining % step
    if is_masked:
        return answer
    stays_inside = all(found.is_within(0, dim.size) for dim, found in answer.items())
    return answer if stays_inside and index.substitute(answer) == value else None

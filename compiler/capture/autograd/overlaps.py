"""Which elements of memory tensors have in common, told by their strides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import torch


def repeats(value: torch.Tensor) -> bool:
    """Whether one element of memory may be several of the tensor's: by strides of zero, as `expand` makes them, or by
    strides that do not nest. An open size is never known to be 1, and open strides are taken to nest."""
    pairs = [
        (step, size)
        for size, step in zip(value.shape, value.stride(), strict=True)
        if type(size) is not int or size != 1
    ]
    if not all(type(number) is int for pair in pairs for number in pair):
        return any(type(step) is int and step == 0 for step, _ in pairs)
    reached = 0
    for step, size in sorted(pairs):
        if step <= reached and size != 0:
            return True
        reached += step * (size - 1)
    return False


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether `torch.func` wraps a tensor, as `vmap` does. It does not tell its memory, and has no views outside."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def share_storage(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether both are known to have one storage."""
    if is_wrapped(one) or is_wrapped(two):
        return False
    return one.untyped_storage()._cdata == two.untyped_storage()._cdata


def overlap_partly(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors of fixed sizes have elements of memory in common, and not each the one at its place."""
    if not share_storage(one, two):
        return False
    layouts = [(*x.shape, *x.stride(), x.storage_offset()) for x in (one, two)]
    is_known = all(isinstance(number, int) for layout in layouts for number in layout)
    return is_known and layouts[0] != layouts[1] and may_overlap(one, two)


def may_overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors may have an element of memory in common. Columns and blocks of a matrix and channels of an
    image have none, by their strides."""
    if one.untyped_storage()._cdata != other.untyped_storage()._cdata or one.dtype != other.dtype:
        return True
    if not one.numel() or not other.numel():
        return False
    steps = [(step, 0, size - 1) for size, step in zip(one.shape, one.stride(), strict=True)]
    steps += [(step, 1 - size, 0) for size, step in zip(other.shape, other.stride(), strict=True)]
    lows, highs = Counter[int](), Counter[int]()
    for step, low, high in steps:
        lows[step] += low
        highs[step] += high
    ranges = [(step, lows[step], highs[step]) for step in sorted(lows, reverse=True) if step > 0]
    return _may_sum_to(int(other.storage_offset() - one.storage_offset()), ranges)


def _may_sum_to(distance: int, ranges: Sequence[tuple[int, int, int]]) -> bool:
    """Whether multiples of steps, each within its bounds, may sum to a distance. The largest step comes first. Where
    strides nest, two multiples of it at most leave what the others reach; where more do, the answer is yes."""
    if not ranges:
        return distance == 0
    (step, low, high), *others = ranges
    lowest, highest = (sum(other[0] * other[bound] for other in others) for bound in (1, 2))
    first, last = max(low, -((highest - distance) // step)), min(high, (distance - lowest) // step)
    if last - first > 1:
        return distance % math.gcd(*(step for step, _, _ in ranges)) == 0
    return any(_may_sum_to(distance - count * step, others) for count in range(first, last + 1))

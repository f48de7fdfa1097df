"""Tensors that hold the same many times over, as a mask that is expanded over a batch does: a stride of zero says so.

A pointwise call on such tensors is made on what is distinct in them, and its result is expanded again, so that knowing
the mask of a batch takes no longer than knowing that of one sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: Larger tensors are not looked through for repetition.
_MOST_LOOKED_AT = 1 << 24


def distinct(value: Tensor) -> Tensor:
    """A view in which each dimension that repeats has the size one."""
    for dim in range(value.dim()):
        if value.shape[dim] > 1 and value.stride(dim) == 0:
            value = value.narrow(dim, 0, 1)
    return value


def is_one_number(value: Tensor) -> bool:
    return distinct(value).numel() == 1


def told_once(value: Tensor) -> Tensor:
    """The same values, with a stride of zero where slices are equal, in a tensor that is small enough to look."""
    if not 1 < distinct(value).numel() <= _MOST_LOOKED_AT:
        return value
    for dim in range(value.dim()):
        first = value.narrow(dim, 0, 1)
        if value.shape[dim] > 1 and value.stride(dim) != 0 and torch.equal(*torch.broadcast_tensors(value, first)):
            value = first.expand(value.shape)
    return value


def run_pointwise(call: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> Any:
    """`call` of the inputs with what repeats in all of them cut away, expanded to the size that it has with them."""
    shape = _shape(inputs)
    result = call(
        [_cut(value, repeating(inputs), len(shape)) if isinstance(value, Tensor) else value for value in inputs]
    )
    return result.expand(shape)


def elements_of_pointwise(inputs: Sequence[Any]) -> int:
    """How many elements `run_pointwise` computes."""
    repeats = repeating(inputs)
    return math.prod(size for dim, size in enumerate(_shape(inputs)) if dim not in repeats)


def repeating(inputs: Sequence[Any]) -> set[int]:
    """The dimensions of the result along which no input has more than one value."""
    shape = _shape(inputs)
    return {dim for dim, size in enumerate(shape) if size > 1 and not any(_varies(x, dim - len(shape)) for x in inputs)}


def _shape(inputs: Sequence[Any]) -> torch.Size:
    return torch.broadcast_shapes(*(value.shape for value in inputs if isinstance(value, Tensor)))


def _varies(value: Any, dim: int) -> bool:
    has_dim = isinstance(value, Tensor) and value.dim() >= -dim
    return has_dim and value.shape[dim] > 1 and value.stride(dim) != 0


def _cut(value: Tensor, dims: set[int], rank: int) -> Tensor:
    for dim in dims:
        if value.dim() >= rank - dim:
            value = value.narrow(dim - rank, 0, 1)
    return value

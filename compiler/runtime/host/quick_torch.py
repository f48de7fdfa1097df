"""Allocations, views and addresses through torch's internal functions: one call each, without argument parsing.

They take what they are given: sizes and strides as tuples of integers, tensors without gradients. A torch that lacks
one of them gets by with the documented function, which costs more at every call and does the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

Allocate = Callable[[Sequence[int], Sequence[int], torch.dtype], torch.Tensor]
View = Callable[[torch.Tensor, Sequence[int], Sequence[int], int], torch.Tensor]


def _offered(name: str) -> Any:
    """What torch has for compiled code under that name; None where this torch has it not."""
    return getattr(torch._C._dynamo.guards, name, None)


def allocator(device: torch.device) -> Allocate:
    """A function of shape, stride and dtype that makes a tensor on `device`, its values whatever was there.

    On a GPU that must be the current one while the function is called; see `compiler.runtime.executable`."""
    quick: Allocate | None = _offered(f"_empty_strided_{device.type}")
    if quick is not None:
        return quick
    allocate = torch.empty_strided

    def empty(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return allocate(shape, stride, dtype=dtype, device=device)

    return empty


def alias(whole: torch.Tensor, shape: Sequence[int], stride: Sequence[int], offset: int) -> torch.Tensor:
    """What `view` gives, but autograd counts changes of either as changes of both: for what a graph returns."""
    return whole.as_strided(shape, stride, whole.storage_offset() + offset)


#: A strided view that starts `offset` elements after the first of a tensor, which may itself start anywhere in its
#: storage: an input can be a slice.
view: View = _offered("_reinterpret_tensor") or alias


@functools.cache
def address_function() -> int | None:
    """The machine's address of a function `void* (PyObject* tensor)` that gives the address of a tensor's first
    element; None where this torch has none."""
    address: int | None = _offered("_torchinductor_pyobject_tensor_data_ptr")
    return address

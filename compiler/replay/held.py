"""Outputs without a copy: what a forward graph saves for its backward graph stays in the recording's memory.

Such an output is a tensor over the recording's own memory. The next replay would write there, so it must not run before
everybody has let go of what the last one gave: the backward graph has run, or the result was dropped. That is asked of
the memory itself, whose users torch counts: a view, a detached tensor, what a hook has kept are users too. While there
is one, calls go out launch by launch, into memory of their own, as without a recording: several forward calls before a
backward one, a graph that is retained, a result that is kept.

The backward graph, recorded with these addresses, is replayed when they come and launched one by one when others do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any
from weakref import WeakSet

import torch

from compiler.runtime.host.quick_torch import view

#: How many tensors share the memory at an address of torch's own record of it; None where this torch does not tell.
users_of_memory: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)


@cache
def _users_of_one_tensor() -> int:
    """What is counted for memory of one tensor, once Python has asked for its storage: that differs by release."""
    assert users_of_memory is not None
    tensor = torch.empty(1)
    return users_of_memory(tensor.untyped_storage()._cdata)


class HeldAddresses:
    """Where the recordings of one device hold outputs."""

    def __init__(self) -> None:
        self._of: WeakSet[Held] = WeakSet()

    def __contains__(self, address: int) -> bool:
        return any(address in held.addresses for held in tuple(self._of))

    def add(self, held: Held) -> None:
        """As long as the recording is kept."""
        self._of.add(held)

    @property
    def bytes(self) -> int:
        return sum(held.bytes for held in tuple(self._of))


def bare(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as a tensor that has nothing but the memory: a view has its base too, which counts."""
    return view(tensor, tuple(tensor.shape), tensor.stride(), 0)


class Held:
    """The held outputs of one recording, by their positions among the outputs. `keepers` are all tensors by which the
    recording itself has their memory, made by `bare`; of an output only its view of a keeper is kept."""

    def __init__(self, outputs: Mapping[int, torch.Tensor], keepers: Sequence[torch.Tensor]) -> None:
        keeper_of = {storage_of(tensor): tensor for tensor in keepers}
        self._makers: list[tuple[int, Callable[[], torch.Tensor]]] = []
        for position, output in outputs.items():
            keeper = keeper_of[storage_of(output)]
            ahead = int(output.storage_offset() - keeper.storage_offset())
            self._makers.append((position, partial(view, keeper, tuple(output.shape), output.stride(), ahead)))
        self.addresses = frozenset(output.data_ptr() for output in outputs.values())
        used = {storage_of(output) for output in outputs.values()}
        tensors = {id(tensor): tensor for tensor in keepers if storage_of(tensor) in used}.values()
        own = Counter(tensor.untyped_storage()._cdata for tensor in tensors)
        alone = _users_of_one_tensor() if own else 0
        self._own_users = tuple((memory, alone + count - 1) for memory, count in own.items())
        self.bytes = sum(keeper_of[storage].untyped_storage().nbytes() for storage in used)

    def are_free(self) -> bool:
        """Whether nobody uses the outputs of the last replay any more."""
        users = users_of_memory
        return users is not None and all([users(memory) <= own for memory, own in self._own_users])

    def put(self, outputs: list[Any]) -> None:
        for position, make in self._makers:
            outputs[position] = make()


def storage_of(tensor: torch.Tensor) -> int:
    """Where its memory begins."""
    return tensor.untyped_storage().data_ptr()

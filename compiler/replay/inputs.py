"""Find the inputs of a graph whose address never changes: parameters, buffers, and what a loop refills in place.

A recording holds addresses. An input that was at the same one in every call so far is recorded with it; another one is
copied, in each call, to a tensor of the recording's own. One that comes at another address for the first time may have
been replaced for good, so the launches are recorded anew with the new address; one that does so again is copied from
then on. What the graph writes to is never copied: the caller must see it written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch

#: How often an input may come at another address before it is copied.
PATIENCE = 2

Addresses = tuple[int, ...]
#: A graph as it is called: with one list of inputs, for one of outputs.
Call = Callable[[list[Any]], list[Any]]


class CannotRecord(RuntimeError):
    """The launches were not recorded; says why. Nothing of the call was executed."""


def addresses_of(inputs: Sequence[Any]) -> Addresses:
    """The address of each tensor's first element; 0 for what is no tensor."""
    return tuple(value.data_ptr() if isinstance(value, torch.Tensor) else 0 for value in inputs)


@dataclass
class InputAddresses:
    """What is known of where a graph's inputs are. `written` are the positions of those that it writes to; without
    patience an input is copied once it has moved."""

    written: frozenset[int] = frozenset()
    last: Addresses | None = None
    moves: Counter[int] = field(default_factory=Counter)
    is_patient: bool = True

    def note(self, addresses: Addresses) -> tuple[int, ...]:
        """Record the addresses of one call, and give the positions where they differ from the call before."""
        last, self.last = self.last, addresses
        if last is None:
            return ()
        moved = tuple(n for n, (old, new) in enumerate(zip(last, addresses, strict=True)) if old != new)
        self.moves.update(moved)
        return moved

    def copied(self) -> tuple[int, ...]:
        """Positions whose inputs are to be copied for each replay."""
        enough = PATIENCE if self.is_patient else 1
        return tuple(sorted(n for n, times in self.moves.items() if times >= enough and n not in self.written))


def has_memory(value: torch.Tensor) -> bool:
    """Whether each element has memory of its own, so that a tensor of the same layout can be copied to. Expanded
    tensors have not, and what overlaps in another way is taken for one that has not either."""
    steps = sorted((step, size) for step, size in zip(value.stride(), value.shape, strict=True) if size != 1)
    return all(step > 0 for step, _ in steps) and all(
        step * size <= next_step for (step, size), (next_step, _) in pairwise(steps)
    )


def memory_for(value: torch.Tensor) -> torch.Tensor:
    """Memory for an input that is copied, in the input's layout."""
    with torch.inference_mode(False), torch.no_grad():
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)

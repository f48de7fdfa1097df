"""The outputs of a replay: copies, since the next replay writes to the same memory.

Views of one piece of memory stay views of one piece, and an output that lies in an input's memory is a view of the
input that the caller gave. Outputs that are held until nobody has them are not copied (see `held.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch

from compiler.replay.held import Held, bare, storage_of
from compiler.replay.price import FEWEST_TOGETHER, Copies
from compiler.runtime.host.quick_torch import alias, allocator


@dataclass(frozen=True)
class Made:
    """One piece of memory that a call made, with the positions of the outputs that lie in it."""

    positions: frozenset[int]
    bytes: int


def made_by(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Made, ...]:
    """The memory of the outputs of a call that is not that of its inputs."""
    given = {storage_of(value) for value in inputs if isinstance(value, torch.Tensor)}
    positions: dict[int, set[int]] = defaultdict(set)
    for n, value in enumerate(outputs):
        if isinstance(value, torch.Tensor) and storage_of(value) not in given:
            positions[storage_of(value)].add(n)
    found = (frozenset(group) for group in positions.values())
    return tuple(Made(group, outputs[min(group)].untyped_storage().nbytes()) for group in found)


def copies_of(made: Sequence[Made], held: Collection[int]) -> Copies:
    """What a replay copies of that, where the outputs at the positions `held` are held."""
    held = frozenset(held)
    kept = [piece for piece in made if piece.positions <= held]
    copied = [piece for piece in made if not piece.positions <= held]
    return Copies(len(copied), sum(piece.bytes for piece in copied), held=sum(len(piece.positions) for piece in kept))


class PoolOutputs:
    """The outputs at `ours`, which lie in the memory of a recording: copied, or held at the positions `held`."""

    def __init__(self, outputs: Sequence[Any], ours: Sequence[int], held: Collection[int]) -> None:
        shared: dict[int, list[int]] = defaultdict(list)
        for n in ours:
            shared[storage_of(outputs[n])].append(n)
        kept = {n: outputs[n] for group in shared.values() if set(group) <= set(held) for n in group}
        self.held = Held(kept, [bare(value) for value in kept.values()])
        groups = [group for group in shared.values() if group[0] not in kept]
        alone = [group[0] for group in groups if len(group) == 1 and _is_dense(outputs[group[0]])]
        self._together = [[(n, outputs[n]) for n in group] for group in groups if group[0] not in alone]
        by_kind: dict[tuple[torch.dtype, torch.device], list[int]] = defaultdict(list)
        for n in alone:
            by_kind[outputs[n].dtype, outputs[n].device].append(n)
        self._many = [_Many(group, outputs) for group in by_kind.values() if len(group) >= FEWEST_TOGETHER]
        few = [n for group in by_kind.values() if len(group) < FEWEST_TOGETHER for n in group]
        self._few = [(n, outputs[n]) for n in few]

    def put(self, outputs: list[Any]) -> None:
        """Put what the replay just launched gives to its positions in `outputs`."""
        for n, value in self._few:
            outputs[n] = value.clone()
        for many in self._many:
            many.put(outputs)
        for members in self._together:
            _put_together(members, outputs)
        self.held.put(outputs)


class _Many:
    """Tensors of one dtype that are copied by one call."""

    def __init__(self, positions: Sequence[int], outputs: Sequence[Any]) -> None:
        self._positions = tuple(positions)
        self._sources = [outputs[n] for n in positions]
        self._layouts = [(tuple(value.shape), value.stride(), value.dtype) for value in self._sources]
        self._empty = allocator(self._sources[0].device)

    def put(self, outputs: list[Any]) -> None:
        copies = [self._empty(*layout) for layout in self._layouts]
        torch._foreach_copy_(copies, self._sources)
        for n, copy in zip(self._positions, copies, strict=True):
            outputs[n] = copy


def _put_together(members: Sequence[tuple[int, torch.Tensor]], outputs: list[Any]) -> None:
    """One copy of the memory of all. Autograd must count a change of one as a change of all, as it does of views: one
    may be the caller's, another one saved for the backward graph."""
    storage = members[0][1].untyped_storage().clone()
    firsts: dict[torch.dtype, torch.Tensor] = {}
    copies: dict[int, torch.Tensor] = {}  # of each tensor that was recorded: it may be given several times
    for n, value in members:
        copy, first = copies.get(id(value)), firsts.get(value.dtype)
        if copy is None and first is not None:
            copy = first.as_strided(value.shape, value.stride(), value.storage_offset())
        elif copy is None:
            whole = torch.empty(0, dtype=value.dtype, device=value.device)
            copy = whole.set_(storage, value.storage_offset(), value.shape, value.stride())
            firsts[value.dtype] = copy
        outputs[n] = copies[id(value)] = copy


class Giver:
    """Called with the inputs of a call whose replay was just launched; gives the outputs. `recorded` are those that the
    recording writes to, made from the inputs `inputs`."""

    def __init__(self, inputs: Sequence[Any], recorded: Sequence[Any], held: Collection[int]) -> None:
        positions = {storage_of(value): n for n, value in enumerate(inputs) if isinstance(value, torch.Tensor)}
        makers: list[Callable[[Sequence[Any]], Any]] = [_constant(value) for value in recorded]
        ours: list[int] = []
        for n, value in enumerate(recorded):
            if not isinstance(value, torch.Tensor):
                continue
            if storage_of(value) not in positions:
                ours.append(n)
                makers[n] = _constant(None)
            elif value is inputs[positions[storage_of(value)]]:
                makers[n] = itemgetter(positions[storage_of(value)])
            else:
                makers[n] = _view_of_input(positions[storage_of(value)], inputs, value)
        self._pool = PoolOutputs(recorded, ours, held)
        self._makers = makers if len(ours) < len(recorded) else ()
        self._empty: list[Any] = [None] * len(recorded)
        self.held = self._pool.held if held else None

    def are_free(self) -> bool:
        """Whether the next replay may write to what this has given."""
        return self.held is None or self.held.are_free()

    def __call__(self, inputs: list[Any]) -> list[Any]:
        outputs = [make(inputs) for make in self._makers] if self._makers else self._empty.copy()
        self._pool.put(outputs)
        return outputs


def _constant(value: Any) -> Callable[[Sequence[Any]], Any]:
    return lambda _: value


def _view_of_input(position: int, inputs: Sequence[Any], value: torch.Tensor) -> Callable[[Sequence[Any]], Any]:
    shape, stride = tuple(value.shape), value.stride()
    ahead = value.storage_offset() - inputs[position].storage_offset()
    return lambda called_with: alias(called_with[position], shape, stride, ahead)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether a clone has the same strides: no element shares its memory with another, and there are no gaps."""
    return tensor.stride() == torch.empty_like(tensor, device="meta").stride()

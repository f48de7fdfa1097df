"""What a replay gives its caller: copies, since the next replay writes where this one did.

Views of one piece of memory stay views of one piece, and an output that lies in an input's memory is a view of the
input that the caller gave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import torch

from compiler.replay.price import Copies
from compiler.runtime.quick_torch import alias

Give = Callable[[Sequence[Any]], list[Any]]


def copies_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> Copies:
    """What a replay would have to copy of these outputs of a call."""
    given = {_storage(value) for value in inputs if isinstance(value, torch.Tensor)}
    made = {_storage(value): value for value in outputs if isinstance(value, torch.Tensor)}
    fresh = [value for storage, value in made.items() if storage not in given]
    return Copies(len(fresh), sum(value.untyped_storage().nbytes() for value in fresh))


def giver(inputs: Sequence[Any], recorded: Sequence[Any]) -> Give:
    """A function of a call's inputs that gives the outputs of the replay just launched; `recorded` are those that the
    recording writes to, made from the inputs `inputs`."""
    places = {_storage(value): n for n, value in enumerate(inputs) if isinstance(value, torch.Tensor)}
    shared: dict[int, list[int]] = defaultdict(list)
    makers: list[Callable[[Sequence[Any]], Any]] = [_constant(value) for value in recorded]
    for n, value in enumerate(recorded):
        if not isinstance(value, torch.Tensor):
            continue
        if _storage(value) in places and value is inputs[places[_storage(value)]]:
            makers[n] = itemgetter(places[_storage(value)])
        elif _storage(value) in places:
            makers[n] = _view_of_input(places[_storage(value)], inputs, value)
        else:
            shared[_storage(value)].append(n)
    alone = [numbers[0] for numbers in shared.values() if len(numbers) == 1 and _is_dense(recorded[numbers[0]])]
    for n in alone:
        makers[n] = _clone(recorded[n])
    together = [[(n, recorded[n]) for n in numbers] for numbers in shared.values() if numbers[0] not in alone]
    if not together and len(alone) == len(recorded):
        return _clones([recorded[n] for n in alone])

    def give(called_with: Sequence[Any]) -> list[Any]:
        outputs = [make(called_with) for make in makers]
        for members in together:
            storage = members[0][1].untyped_storage().clone()
            for n, value in members:
                outputs[n] = torch.empty(0, dtype=value.dtype, device=value.device).set_(
                    storage, value.storage_offset(), value.shape, value.stride()
                )
        return outputs

    return give


def _clones(recorded: Sequence[torch.Tensor]) -> Give:
    return lambda _: [value.clone() for value in recorded]


def _constant(value: Any) -> Callable[[Sequence[Any]], Any]:
    return lambda _: value


def _clone(value: torch.Tensor) -> Callable[[Sequence[Any]], Any]:
    return lambda _: value.clone()


def _view_of_input(place: int, inputs: Sequence[Any], value: torch.Tensor) -> Callable[[Sequence[Any]], Any]:
    shape, stride = tuple(value.shape), value.stride()
    ahead = value.storage_offset() - inputs[place].storage_offset()
    return lambda called_with: alias(called_with[place], shape, stride, ahead)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether a clone has the same strides: no element shares its memory with another, and there are no gaps."""
    return tensor.stride() == torch.empty_like(tensor, device="meta").stride()

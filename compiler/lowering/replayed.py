"""Random numbers that the graph draws twice alike, as a checkpointed region does.

Activation checkpointing computes a part of the forward pass again in the backward pass, and a dropout in it must drop
the same elements. AOTAutograd keeps the state of torch's generator for that: the forward graph draws by
`run_and_save_rng_state(operator, ...)`, which returns the state beside the numbers, and the backward graph by
`run_with_rng_state(state, operator, ...)`. Both stay calls, since only torch's own generator has that state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from compiler.lowering.builder import Builder
from compiler.lowering.registry import operator_name

KEEPING = torch.ops.higher_order.run_and_save_rng_state
REPLAYING = torch.ops.higher_order.run_with_rng_state
DRAWS = frozenset({KEEPING, REPLAYING})


@dataclass(frozen=True)
class Draw:
    """A call of `operator` that keeps the generator's state or starts from a kept one; its results are a flat tuple."""

    way: Any
    operator: Any

    @property
    def __name__(self) -> str:
        return f"{self.way.name()} of {operator_name(self.operator)}"

    def __str__(self) -> str:
        return self.__name__

    def __call__(self, *arguments: Any, **keywords: Any) -> tuple[Any, ...]:
        if self.way is KEEPING:
            results = KEEPING(self.operator, *arguments, **keywords)
        else:
            state, *rest = arguments
            results = REPLAYING(state, self.operator, *rest, **keywords)
        return tuple(tree_flatten(results)[0])


def draw(build: Builder, way: Any, args: Sequence[Any], kwargs: dict[str, Any], eager: Any) -> Any:
    """The call that `way` stands for; `eager` describes what it gives."""
    place = 0 if way is KEEPING else 1
    target = Draw(way, args[place])
    leaves, structure = tree_flatten(eager)
    reason = f"{operator_name(target.operator)} must draw the same numbers in the forward and in the backward pass."
    arguments = [*args[:place], *args[place + 1 :]]
    values = build.extern(target, arguments, kwargs, is_fallback=False, reason=reason, result=tuple(leaves))
    return tree_unflatten(values, structure)

"""Signs that torch only notes of the gradients which come to a backward graph, as those of `z.conj().imag`.

No guard looks at them: the fake gradient is as the result was, and a call may give any. So the graph is compiled for
gradients as they lie in memory, and what a call gives with another sign than in memory is copied first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from compiler.capture.autograd.training import TANGENT
from compiler.capture.captured import Implementation
from compiler.fx.fake_values import fake_mode_of


def take_gradients_as_in_memory(backward: GraphModule) -> list[int]:
    """Note it of the graph's gradients, and give their positions among its inputs."""
    positions = []
    for position, given in enumerate(backward.graph.find_nodes(op="placeholder")):
        value = given.meta.get("val")
        if not given.name.startswith(TANGENT) or not isinstance(value, torch.Tensor):
            continue
        positions.append(position)
        if value.is_neg():
            with fake_mode_of([value]):
                given.meta["val"] = _empty_beside(value)
    return positions


def with_signs_in_memory(run: Implementation, positions: Sequence[int]) -> Implementation:
    """`run`, with the inputs at these positions copied where their signs are only noted."""
    if not getattr(run, "_boxed_call", False):
        return lambda *inputs: run(*_signed(list(inputs), positions))

    def call(inputs: list[Any]) -> Any:
        return run(_signed(inputs, positions))

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _signed(inputs: list[Any], positions: Sequence[int]) -> list[Any]:
    for position in positions:
        if inputs[position].is_neg():
            inputs[position] = _empty_beside(inputs[position]).copy_(inputs[position])
    return inputs


def _empty_beside(value: torch.Tensor) -> torch.Tensor:
    """Of the same strides: the graph is compiled for those."""
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)

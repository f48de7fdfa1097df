"""A forward and a backward pass as one function, so that both are timed and checked together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class ForwardAndBackward:
    """`function` and then the gradients of all its inputs of floating point, of any shapes.

    The gradients that its outputs are given are ones for a single number and normal otherwise, rounded to bfloat16, so
    that they are the same numbers in every dtype. They are made once for each shape, before anything is timed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.given: dict[tuple[int, torch.Size, torch.dtype, torch.device], Tensor] = {}

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
        with torch.enable_grad():
            results = self.function(*leaves)
        results = list(results) if isinstance(results, tuple | list) else [results]
        followed = [result for result in results if result.requires_grad]
        gradients = torch.autograd.grad(
            followed,
            [leaf for leaf in leaves if leaf.requires_grad],
            [self._given(place, result) for place, result in enumerate(followed)],
            allow_unused=True,
        )
        return *(result.detach() for result in results), *(one for one in gradients if one is not None)

    def _given(self, place: int, result: Tensor) -> Tensor:
        key = (place, result.shape, result.dtype, result.device)
        if key not in self.given:
            generator = torch.Generator(result.device).manual_seed(place)
            values = torch.randn(result.shape, generator=generator, device=result.device)
            values = torch.ones_like(values) if result.dim() == 0 else values.to(torch.bfloat16)
            self.given[key] = values.to(result.dtype)
        return self.given[key]

"""One program of the table: a function, and inputs whose sizes are named so that it runs large and small.

Counting needs no values, so the large sizes are those of real use; the small ones, which divide nothing evenly, are for
tests of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

#: rows, columns, batch, heads, length, head width, channels, image width, words, picked rows.
LARGE = {"n": 8192, "m": 2048, "b": 16, "h": 16, "l": 1024, "d": 64, "c": 256, "w": 56, "v": 32000, "k": 1000}
SMALL = {"n": 96, "m": 160, "b": 2, "h": 3, "l": 40, "d": 16, "c": 12, "w": 14, "v": 300, "k": 37}


@dataclass(frozen=True)
class Input:
    """A tensor: `shape` names sizes ("n m", or numbers). Standard normal numbers, their absolute values, whole numbers
    below the size `high`, or coin throws."""

    shape: str
    dtype: torch.dtype = torch.float32
    kind: Literal["normal", "positive", "index", "bool"] = "normal"
    high: str = ""
    needs_gradient: bool = False

    def sizes(self, named: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(_size(word, named) for word in self.shape.split())

    def make(self, named: Mapping[str, int]) -> torch.Tensor:
        """With values, on the CPU."""
        shape = self.sizes(named)
        if self.kind == "index":
            return torch.randint(0, _size(self.high, named), shape, dtype=self.dtype)
        if self.kind == "bool":
            return torch.rand(shape) < 0.5
        values = torch.randn(shape).to(self.dtype)
        values = values.abs() if self.kind == "positive" else values
        return values.requires_grad_(self.needs_gradient)

    def empty(self, named: Mapping[str, int], device: str) -> torch.Tensor:
        """Without values."""
        dtype = torch.bool if self.kind == "bool" else self.dtype
        return torch.empty(self.sizes(named), dtype=dtype, device=device, requires_grad=self.needs_gradient)


def _size(word: str, named: Mapping[str, int]) -> int:
    return named[word] if word in named else int(word)


def tensor(shape: str, dtype: torch.dtype = torch.float32) -> Input:
    return Input(shape, dtype)


def weight(shape: str, dtype: torch.dtype = torch.float32) -> Input:
    """An input that a gradient is asked for."""
    return Input(shape, dtype, needs_gradient=True)


def index(shape: str, high: str) -> Input:
    return Input(shape, torch.int64, "index", high)


def coin(shape: str) -> Input:
    return Input(shape, torch.bool, "bool")


@dataclass(frozen=True)
class Program:
    """A function and its inputs. Where an input needs a gradient, the backward graph counts too, for gradients of ones
    in the results."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    is_random: bool = False

    @property
    def has_backward(self) -> bool:
        return any(one.needs_gradient for one in self.inputs)


def differentiable(results: Any) -> list[torch.Tensor]:
    """The results that a gradient may be asked of."""
    flat = results if isinstance(results, tuple | list) else [results]
    return [one for one in flat if isinstance(one, torch.Tensor) and one.requires_grad]

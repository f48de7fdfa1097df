"""What a row of the tables is made of: a function, its inputs for a large GPU, and the same cut short for a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.patterns import Case, Input

#: The longest side of an input on a CPU.
SMALL_SIDE = 64

F32, I64 = torch.float32, torch.int64


def case(name: str, function: Callable[..., Any], *inputs: Input | tuple[int, ...]) -> Case:
    full = tuple(one if isinstance(one, Input) else Input(one) for one in inputs)
    return Case(name, function, full, tuple(_small(one) for one in full))


def _small(one: Input) -> Input:
    shape = tuple(min(size, SMALL_SIDE) for size in one.shape)
    return Input(shape, one.dtype, one.kind, min(one.high, SMALL_SIDE))


def typed(dtype: torch.dtype, *shapes: tuple[int, ...]) -> tuple[Input, ...]:
    return tuple(Input(shape, dtype) for shape in shapes)


def indices(shape: tuple[int, ...], high: int) -> Input:
    return Input(shape, I64, "index", high)

"""How a program of the wide suite is written down: a function under `@program(...)`, which names its inputs.

@program(normal(8192, 1024, dtype=BF16), index(8192, high=1024))
def picked(x, place):
    return x.gather(1, place[:, None]).float().log_softmax(0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from bench.patterns import Case, Input, Limit

F = TypeVar("F", bound=Callable[..., Any])

BF16 = torch.bfloat16
F16 = torch.float16
#: Every program of the suite by its name.
PROGRAMS: dict[str, Case] = {}


def program(
    *inputs: Input, gradients: bool = False, is_random: bool = False, limit: Limit = "memory"
) -> Callable[[F], F]:
    """Add a function to the suite under its own name. With `gradients` it runs forward and backward. Raises ValueError
    for a name that another program has."""

    def add(function: F) -> F:
        name = function.__name__
        if name in PROGRAMS:
            raise ValueError(f"two programs of the wide suite are called {name}")
        PROGRAMS[name] = Case(name, function, inputs, inputs, limit=limit, is_random=is_random, has_gradients=gradients)
        return function

    return add


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Input:
    """Standard normal numbers."""
    return Input(shape, dtype)


def positive(*shape: int, dtype: torch.dtype = torch.float32) -> Input:
    """Absolute values of standard normal numbers."""
    return Input(shape, dtype, "positive")


def uniform(*shape: int, dtype: torch.dtype = torch.float32) -> Input:
    """Numbers from 0 to 1."""
    return Input(shape, dtype, "uniform")


def index(*shape: int, high: int, dtype: torch.dtype = torch.int64) -> Input:
    """Whole numbers from 0 to below `high`."""
    return Input(shape, dtype, "index", high)


def mask(*shape: int) -> Input:
    """Booleans, half of them true."""
    return Input(shape, torch.bool, "mask")

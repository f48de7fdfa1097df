"""What index expressions are sums of: loop variables, loaded values, quotients and remainders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.ir.size import Integer

if TYPE_CHECKING:
    from compiler.ir.index import Index


@dataclass(frozen=True, slots=True)
class Dim:
    """A loop variable: it takes the integers 0, 1, ..., size - 1."""

    name: str
    size: Integer


@dataclass(frozen=True, slots=True)
class Indirect:
    """The value of an earlier instruction (its number in the body), known to lie in 0 <= value < size."""

    value: int
    size: Integer


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """`numerator // divisor`, rounded down. Built by `index.floor_divide` alone, which leaves it only where nothing
    simpler is equal; the divisor is positive."""

    numerator: Index
    divisor: Integer


@dataclass(frozen=True, slots=True)
class Mod:
    """`numerator % divisor`, from 0 to `divisor` - 1. Built by `index.modulo` alone, likewise."""

    numerator: Index
    divisor: Integer


Atom = Dim | Indirect | FloorDiv | Mod

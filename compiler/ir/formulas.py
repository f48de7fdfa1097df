"""Formulas of sizes as Python text, such as `max(s0, 8)` or `math.tanh(s0 / 3)`: what they may call, and their values.

A formula that gives an integer is an `Opaque` size (`size.py`). One that gives a float is a `Real`. Where sizes are
symbols, a `Real` is known only in a call: the wrapper computes it, by the operators and functions that eager's Python
uses, so it is eager's number to the last bit. A kernel takes those bits as two sizes of 32 bits each.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compiler.ir.size import Opaque, Size, Symbol, Undecided, size


def high_half(value: float) -> int:
    """The upper 32 of the 64 bits of a float, as a signed integer."""
    return int(struct.unpack("<ii", struct.pack("<d", value))[1])


def low_half(value: float) -> int:
    """The lower 32 of the 64 bits of a float, as a signed integer."""
    return int(struct.unpack("<ii", struct.pack("<d", value))[0])


#: All that a formula may name besides symbols.
FUNCTIONS: Mapping[str, Any] = {
    "math": math, "max": max, "min": min, "int": int, "float": float, "bool": bool, "abs": abs, "round": round,
    "high_half": high_half, "low_half": low_half,
}  # fmt: skip

_ATOM = re.compile(r"[\w.]+(\([^()]*\))?")


def value_of(text: str, values: Mapping[str, Any]) -> Any:
    """The value of a formula where each symbol has the value given by its name. Raises what the formula raises."""
    return eval(text, {"__builtins__": {}, **FUNCTIONS}, dict(values))


def as_operand(text: str) -> str:
    """A formula as it may stand beside any operator."""
    return text if _ATOM.fullmatch(text) else f"({text})"


@dataclass(frozen=True)
class Real:
    """A float, or a truth, that Python computes from sizes: its `text`, over the symbols that it names."""

    text: str
    symbols: tuple[Symbol, ...]

    @property
    def hint(self) -> float:
        """Its value in the first call; NaN where it has none."""
        return float(_at_first(self.text, self.symbols, math.nan))

    @property
    def halves(self) -> tuple[Size, Size]:
        """The upper and the lower half of its bits, as sizes that a kernel can be called with."""
        return _half(high_half, self), _half(low_half, self)

    def __bool__(self) -> bool:
        raise Undecided(f"whether {self.text} is zero depends on the sizes of a call")


def _half(function: Callable[[float], int], number: Real) -> Size:
    text = f"{function.__name__}({number.text})"
    return size(Opaque(text, number.symbols, function(number.hint)))


def integer(text: str, symbols: tuple[Symbol, ...], lower: int | None) -> Size:
    """The size that a formula gives, which is never below `lower`."""
    return size(Opaque(text, symbols, int(_at_first(text, symbols, lower or 0)), lower))


def _at_first(text: str, symbols: tuple[Symbol, ...], otherwise: float) -> Any:
    """The value of a formula in the first call. It may have none for the guess that a late size is taken for."""
    try:
        return value_of(text, {symbol.name: symbol.hint for symbol in symbols})
    except (ArithmeticError, ValueError):
        return otherwise

"""An index expression as source text."""

from __future__ import annotations

from collections.abc import Callable

from compiler.ir.index import Dim, FloorDiv, Index, Indirect
from compiler.ir.size import Integer, Size, text_of


def text_of_index(index: Index, name: Callable[[Dim | Indirect], str], floor_divide_operator: str = "//") -> str:
    """Source text; `name` gives the text of variables. Python and, with "/", C (all values here are >= 0 wherever a
    division is taken, which `floor_divide` and `modulo` ensure)."""
    if not index.terms:
        return text_of(index.offset)
    parts: list[str] = []
    for atom, coefficient in index.terms:
        if isinstance(atom, Dim | Indirect):
            text = name(atom)
        else:
            inner = text_of_index(atom.numerator, name, floor_divide_operator)
            inner = f"({inner})" if " " in inner and not _is_parenthesised(inner) else inner
            operator = floor_divide_operator if isinstance(atom, FloorDiv) else "%"
            text = f"{inner} {operator} {atom.divisor}"
            text = f"({text})"
        sign, magnitude = _sign_and_magnitude(coefficient)
        text = text if magnitude == 1 else f"{_factor(magnitude)} * {text}"
        parts.append(text if not parts and sign == "+" else f"-{text}" if not parts else f" {sign} {text}")
    if index.offset != 0:
        sign, magnitude = _sign_and_magnitude(index.offset)
        parts.append(f" {sign} {magnitude}")
    return "".join(parts)


def _sign_and_magnitude(value: Integer) -> tuple[str, Integer]:
    """How to print it after other terms."""
    is_negative = value < 0 if isinstance(value, int) else all(coefficient < 0 for _, coefficient in value.terms)
    return ("-", value * -1) if is_negative else ("+", value)


def _factor(value: Integer) -> str:
    return value.factor if isinstance(value, Size) else str(value)


def _is_parenthesised(text: str) -> bool:
    """Whether the first bracket closes only at the end."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1
    return False

"""Words that sentences share, and the name that snippets go by. It imports nothing of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: The file name that a snippet is compiled under: tracebacks, guards and graphs name it.
SNIPPET_FILE = "snippet.py"


def counted(number: float, noun: str) -> str:
    """`1 kernel`, `2 kernels`, `1,024 launches`."""
    plural = noun + ("es" if noun.endswith(("ch", "s", "x")) else "s")
    return f"{number:,.0f} {noun if number == 1 else plural}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def line_list(lines: Iterable[int]) -> str:
    """`line 3`, `lines 3, 4`; nothing where there are none."""
    numbers = [str(line) for line in lines]
    return f"line{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""


_AN_OBJECT = "it must be an object with names and values, as {...}"
_OF_ITS_TYPE = {
    "bool_parsing": "it must be true or false",
    "bool_type": "it must be true or false",
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "int_type": "it must be a whole number",
    "float_parsing": "it must be a number",
    "float_type": "it must be a number",
    "string_type": "it must be a text",
    "list_type": "it must be a list",
    "tuple_type": "it must be a list",
    "dict_type": _AN_OBJECT,
    "model_type": _AN_OBJECT,
    "model_attributes_type": _AN_OBJECT,
    "missing": "it is missing",
}


def said_of_fault(fault: Mapping[str, Any]) -> str:
    """What one of pydantic's errors says of a value, in words for whoever wrote it, and without the value."""
    if fault["type"] == "string_too_short" and fault["ctx"]["min_length"] == 1:
        return "it is empty"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return _OF_ITS_TYPE.get(fault["type"]) or re.sub(r"^[A-Z]\w* should (?=be |have |match )", "it must ", message)


def byte_count(value: int) -> str:
    """Three digits and a decimal unit, as on the page."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value} B"


def digits_apart(times: Sequence[float]) -> int:
    """Decimals that tell the most of these microseconds apart, up to a picosecond: one where that is enough."""
    return max(range(1, 6), key=lambda digits: (len({f"{time:.{digits}f}" for time in times}), -digits))


def plus_minus(share: float) -> str:
    """`± 1.7 %`, `± 12 %`: by how much another run may differ."""
    percent = 100 * share
    return "± over 100 %" if percent >= 100 else f"± {percent:.1f} %" if percent < 10 else f"± {percent:.0f} %"


def within_factor(factor: float) -> str:
    """How far the ratio of another run may be, one `factor` either way: `± 12 %`, `within a factor of 3.1`.

    A share of 100 % or more, of which one half would lie below zero, says nothing of a ratio.
    """
    if factor < 2:
        return plus_minus(factor - 1)
    return f"within a factor of {factor:.2g}" if factor < 99.5 else "within a factor of 100 or more"


def times(ratio: float, factor: float | None) -> str:
    """`1.07 times` where another run gives that within a tenth, else `3.4 times`."""
    is_exact = factor is not None and factor < 1.1 and ratio < 10
    return f"{ratio:.2f} times" if is_exact else f"{ratio:.2g} times" if ratio < 99.5 else f"{ratio:,.0f} times"


def beside_eager(eager_ms: float, ms: float, factor: float | None, is_clear: bool | None) -> str:
    """How a time compares with eager's, with how far the ratio of another run may be: one `factor` either way."""
    within = "" if factor is None else f" ({within_factor(factor)})"
    if not is_clear:
        return f"no measurable difference in time{within}"
    ratio = eager_ms / ms
    words = f"{times(ratio, factor)} as fast as eager" if ratio >= 1 else f"{times(1 / ratio, factor)} as slow as eager"
    return words + within

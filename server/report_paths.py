"""Paths into a report: how a question and a claim of a lesson name the value that they are about.

    graphs[0].kernels | count
    graphs[0].decisions | where verdict = refused | each reason | first
    graphs | each removed | where kind = dead | count
    summary.eager_bytes | in MB
    summary.eager_bytes | over summary.bytes

A path begins with fields of the report, and goes on with filters, each of what stands before it. Fields are those of
`compiler.report`; a name that is no field is answered with those that there are. Nothing but fields can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from compiler.report import Report
from compiler.wording import counted

MOST_CHARACTERS = 300
MOST_FILTERS = 12
#: Values that a path may end in, where it ends in a list: names to choose from, and no part of a report.
MOST_VALUES = 200
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
FILTERS = (
    "count, sum, largest, smallest, first, last, distinct, "
    "each FIELD, where FIELD = VALUE, in UNIT, over PATH, less PATH"
)

Scalar = bool | int | float | str | None
Value = Scalar | list[Scalar]

_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d{1,6})\]")
_CONDITION = re.compile(r"([\w.\[\]]+)\s*(!=|=|>|<|has)\s*(.+)")


class PathProblem(ValueError):
    """A path that cannot be read, or that leads nowhere in this report; the text says where and what there is."""


@dataclass(frozen=True)
class Filter:
    """One step after a bar: its word, and what follows the word."""

    word: str
    rest: str


def value_at(report: Report, path: str) -> Value:
    """What `path` leads to in `report`. Raises `PathProblem`."""
    start, *filters = [part.strip() for part in path.split("|")]
    if len(path) > MOST_CHARACTERS or len(filters) > MOST_FILTERS:
        raise PathProblem(f"A path has at most {MOST_CHARACTERS} characters and {MOST_FILTERS} filters.")
    found = _follow(report, start)
    for text in filters:
        word, _, rest = text.partition(" ")
        found = _apply(report, found, Filter(word, rest.strip()))
    return _plain(found, path)


def _follow(start: Any, text: str) -> Any:
    """The field of a field of … `start`."""
    found, place = start, 0
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None or (place == 0 and text.startswith(".")):
            raise PathProblem(f"{text[:80]!r} is no path: write fields with dots between, such as graphs[0].kernels.")
        name, index = step.groups()
        found = _field(found, name) if name else _item(found, int(index), text[:place])
        place = step.end()
    if not text:
        raise PathProblem("A path begins with a field of the report, such as summary.kernels.")
    return found


def _field(holder: Any, name: str) -> Any:
    if isinstance(holder, BaseModel):
        fields = type(holder).model_fields
        if name in fields:
            return getattr(holder, name)
        raise PathProblem(f"A {type(holder).__name__} has no field {name!r}; it has {', '.join(fields)}.")
    if isinstance(holder, dict):
        return holder.get(name)
    if isinstance(holder, list | tuple):
        raise PathProblem(f"{name!r} is a field, and this is a list: name an item, [0], or write `| each {name}`.")
    raise PathProblem(f"{name!r} is a field, and {_shown(holder)} has no fields.")


def _item(holder: Any, index: int, before: str) -> Any:
    if not isinstance(holder, list | tuple):
        raise PathProblem(f"{before} is no list, so it has no [{index}].")
    if index >= len(holder):
        raise PathProblem(f"{before} has {counted(len(holder), 'item')}, so there is no [{index}].")
    return holder[index]


def _apply(report: Report, found: Any, step: Filter) -> Any:
    if step.word in _OF_A_LIST:
        return _OF_A_LIST[step.word](_listed(found, step.word))
    if step.word == "each":
        return [value for item in _listed(found, "each") for value in _spread(_follow(item, step.rest))]
    if step.word == "where":
        condition = _condition(step.rest)
        return [item for item in _listed(found, "where") if _holds(item, *condition)]
    if step.word in ("in", "over", "less"):
        return _computed(report, found, step)
    raise PathProblem(f"There is no filter {step.word[:40]!r}; there are {FILTERS}.")


def _listed(found: Any, word: str) -> list[Any]:
    if isinstance(found, list | tuple):
        return list(found)
    raise PathProblem(f"`{word}` is for lists, and this is {_shown(found)}.")


def _spread(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _numbers(items: list[Any]) -> list[float]:
    numbers = [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]
    if len(numbers) < len(items) or not items:
        raise PathProblem("`sum`, `largest` and `smallest` need a list of numbers that is not empty.")
    return numbers


def _end(items: list[Any], place: int) -> Any:
    if not items:
        raise PathProblem("`first` and `last` need a list that is not empty.")
    return items[place]


def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items[: MOST_VALUES * 10]:
        if item not in kept:
            kept.append(item)
    return kept


_OF_A_LIST: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda items: sum(_numbers(items)) if items else 0,
    "largest": lambda items: max(_numbers(items)),
    "smallest": lambda items: min(_numbers(items)),
    "first": lambda items: _end(items, 0),
    "last": lambda items: _end(items, -1),
    "distinct": _distinct,
}


def _condition(text: str) -> tuple[str, str, str]:
    """A field, a sign and a value."""
    read = _CONDITION.fullmatch(text)
    if read is None:
        raise PathProblem(f"{text[:80]!r} is no condition: write FIELD = VALUE, with =, !=, >, < or has.")
    name, sign, value = read.groups()
    if sign in "<>":
        try:
            float(value)
        except ValueError:
            raise PathProblem(f"{value[:40]!r} is no number to compare {name} with.") from None
    return name, sign, value


def _holds(item: Any, name: str, sign: str, value: str) -> bool:
    found = _follow(item, name)
    if sign == "has":
        return value in found if isinstance(found, list | tuple | str) else False
    if sign in "<>":
        limit = float(value)
        return isinstance(found, int | float) and (found > limit if sign == ">" else found < limit)
    return (_shown(found) == value) is (sign == "=")


def _computed(report: Report, found: Any, step: Filter) -> float:
    (number,) = _numbers([found])
    if step.word == "in":
        if step.rest not in UNITS:
            raise PathProblem(f"There is no unit {step.rest[:20]!r}; there are {', '.join(UNITS)}.")
        return number / UNITS[step.rest]
    (other,) = _numbers([_follow(report, step.rest)])
    if step.word == "less":
        return number - other
    if other == 0:
        raise PathProblem(f"{step.rest} is 0: nothing can be divided by it.")
    return number / other


def _plain(found: Any, path: str) -> Value:
    if isinstance(found, BaseModel | dict) or (
        isinstance(found, list | tuple) and any(_is_part(item) for item in found)
    ):
        raise PathProblem(f"{path!r} leads to a part of the report, not to a value: add a field, or `| count`.")
    return list(found[:MOST_VALUES]) if isinstance(found, list | tuple) else found


def _is_part(item: Any) -> bool:
    return isinstance(item, BaseModel | dict | list | tuple)


def _shown(value: Any) -> str:
    """A value as a condition writes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, BaseModel):
        return f"a {type(value).__name__}"
    return value if isinstance(value, str) else str(value)

"""Symbolic sizes and numbers of a graph, recorded as torch creates each symbol."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compiler.capture.diagnosis.sources import words_of
from compiler.capture.recording.torch_trace import TraceRecord
from compiler.report import Symbol
from compiler.wording import SNIPPET_FILE

_RANGE = re.compile(r"(?:VR)?\[(?P<low>[^,]+), (?P<high>[^\]]+)\]")


def symbols_of(records: Iterable[TraceRecord]) -> list[Symbol]:
    """The symbols made in one compilation, less those that something later fixed to one value.

    Dynamo may trace a function more than once: what counts is its last attempt, so a symbol is listed once.
    """
    found: dict[str, Symbol] = {}
    for record in records:
        name = str(record.facts.get("symbol", ""))
        if record.name == "create_symbol":
            found[name] = Symbol(
                name=name,
                source=words_of(str(record.facts.get("source", ""))),
                value=str(record.facts.get("val")),
                range=_range_in_words(str(record.facts.get("vr", ""))),
                line=_line(record),
            )
        elif record.name == "symbolic_shape_specialization":
            found.pop(name, None)
    return list(found.values())


def _range_in_words(text: str) -> str:
    """`[2, int_oo]` -> "at least 2"; both ends open -> "any"."""
    found = _RANGE.match(text)
    if found is None:
        return text
    low, high = (None if "oo" in end else end for end in (found["low"].strip(), found["high"].strip()))
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}" if high is not None else "any"


def _line(record: TraceRecord) -> int | None:
    return next((line for file, line, _ in reversed(record.stack) if file == SNIPPET_FILE), None)

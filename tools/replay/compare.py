"""Two documents of `regenerate.py`, program by program: what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

#: One program as `regenerate.py` writes it.
Replayed = Mapping[str, Any]
NOT_ASKED = "not asked about"


@dataclass(frozen=True)
class Change:
    """What is different in one program. Figures and decisions are by their names, as before and after."""

    program: str
    notes: list[str] = field(default_factory=list)
    figures: dict[str, tuple[int, int]] = field(default_factory=dict)
    decisions: dict[str, tuple[str, str]] = field(default_factory=dict)
    diffs: list[str] = field(default_factory=list)

    @property
    def is_any(self) -> bool:
        return bool(self.notes or self.figures or self.decisions or self.diffs)


def compare(before: Mapping[str, Replayed], after: Mapping[str, Replayed]) -> list[Change]:
    """A `Change` for every program of either document, empty where both are the same, in the order of the second."""
    names = [*after, *(name for name in before if name not in after)]
    return [_compare_program(name, before.get(name), after.get(name)) for name in names]


def _compare_program(name: str, before: Replayed | None, after: Replayed | None) -> Change:
    if before is None:
        return Change(name, ["a program that there was not before"])
    if after is None:
        return Change(name, ["a program that there is no longer"])
    notes = []
    if before["source"] != after["source"]:
        notes.append("the program itself was changed")
    errors = before.get("error"), after.get("error")
    if any(errors):
        if errors[0] != errors[1]:
            notes += [f"before: {errors[0] or 'compiled'}", f"after: {errors[1] or 'compiled'}"]
        return Change(name, notes)
    figures = {
        key: (before["figures"].get(key, 0), count)
        for key, count in after["figures"].items()
        if before["figures"].get(key, 0) != count
    }
    return Change(name, notes, figures, _changed_decisions(before, after), _diffs(before, after))


def _changed_decisions(before: Replayed, after: Replayed) -> dict[str, tuple[str, str]]:
    old, new = before["decisions"], after["decisions"]
    pairs = [*new, *(pair for pair in old if pair not in new)]
    return {
        pair: (old.get(pair, NOT_ASKED), new.get(pair, NOT_ASKED)) for pair in pairs if old.get(pair) != new.get(pair)
    }


def _diffs(before: Replayed, after: Replayed) -> list[str]:
    """A unified diff of every text that is not the same; a new one and one that is gone are told whole."""
    old, new = before["texts"], after["texts"]
    diffs = []
    for name in [*new, *(name for name in old if name not in new)]:
        lines = unified_diff(
            old.get(name, "").splitlines(),
            new.get(name, "").splitlines(),
            f"before: {name}" if name in old else "before: no such kernel",
            f"after: {name}" if name in new else "after: no such kernel",
            lineterm="",
        )
        text = "\n".join(lines)
        if text:
            diffs.append(text)
    return diffs

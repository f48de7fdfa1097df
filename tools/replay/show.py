"""The changes as text: those of each program, then how many there are of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from tools.replay.compare import Change


def show(changes: Sequence[Change], with_texts: bool = True) -> Iterator[str]:
    """Lines to print, one block for each program that changed."""
    for change in changes:
        if change.is_any:
            yield from _show_program(change, with_texts)
            yield ""
    yield summary(changes)


def _show_program(change: Change, with_texts: bool) -> Iterator[str]:
    yield f"== {change.program}"
    for note in change.notes:
        yield f"  {note}"
    for name, (before, after) in change.figures.items():
        yield f"  {name.replace('_', ' ')}: {before:,} → {after:,}"
    for pair, (old, new) in change.decisions.items():
        yield f"  {pair}: {old} → {new}"
    if with_texts:
        for diff in change.diffs:
            yield indent(diff, "  ", lambda line: True)
    elif change.diffs:
        yield f"  {_count(len(change.diffs), 'text')} changed"


def summary(changes: Sequence[Change]) -> str:
    """One sentence: how many programs, and in what they differ."""
    changed = [change for change in changes if change.is_any]
    if not changed:
        return f"{_count(len(changes), 'program')}, no difference."
    kinds = {
        "kernels' text": sum(bool(change.diffs) for change in changed),
        "counts or bytes": sum(bool(change.figures) for change in changed),
        "decisions": sum(bool(change.decisions) for change in changed),
        "other": sum(bool(change.notes) for change in changed),
    }
    told = ", ".join(f"{kind} of {count}" for kind, count in kinds.items() if count)
    unchanged = len(changes) - len(changed)
    return f"{_count(len(changes), 'program')}: {unchanged} unchanged, {len(changed)} changed ({told})."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

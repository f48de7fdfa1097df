"""What a rewrite decided, and why: the closed list is that of the sections of `docs/rewrites.md`.

A rewrite that is not legal is a value with a reason, never a silent no: the reader wrote something that looks like
attention and learns what stands between it and the fused operator.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.pages import rewrite_sections
from compiler.report import Rewrite, Subject

#: Each reason with its sentence and its remedy.
REASONS = rewrite_sections()


class NotLegalError(Exception):
    """Raised while a match is examined: the id of the reason, and what exactly it was found in."""

    def __init__(self, reason: str, detail: str = "") -> None:
        if reason not in REASONS:
            raise KeyError(f"{reason!r} is not in the closed list of reasons")
        super().__init__(reason)
        self.reason, self.detail = reason, detail


def rewrite_record(what: Subject, reason: str, detail: str, lines: Iterable[int], *, is_replaced: bool) -> Rewrite:
    sentence, remedy = REASONS[reason]
    return Rewrite(
        what=what,
        verdict="replaced" if is_replaced else "kept",
        reason=reason,
        message=sentence,
        detail=detail,
        remedy=remedy,
        lines=list(lines),
    )

"""Wrong results in sentences, for the terminal and for Markdown alike: a wrong result has no speed."""

from __future__ import annotations

from compiler.report import Report, WrongResult

_WHOSE = {"compiled": "wrong result", "peer": "wrong result of the peer"}


def wrong_sentences(wrong: list[WrongResult]) -> list[str]:
    """Every wrong output, and by how much it is off."""
    return [f"{_WHOSE[one.contestant]}: {one.message}" for one in wrong]


def untimed_sentence(report: Report) -> str:
    """Who has no time in the table of times, or nothing."""
    names = [name for name in _WHOSE if any(one.contestant == name for one in report.wrong_results)]
    return f"A wrong result has no speed, so no time is given of: {', '.join(names)}." if names else ""

"""Words that sentences share, and the name that snippets go by. It imports nothing."""

from __future__ import annotations

#: The file name that a snippet is compiled under: tracebacks, guards and graphs name it.
SNIPPET_FILE = "snippet.py"


def counted(number: float, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number:.0f} {noun}" if number == 1 else f"{number:.0f} {noun}s"


def byte_count(value: int) -> str:
    """Three digits and a decimal unit, as on the page."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value} B"

"""Words that sentences share."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number:.0f} {noun}" if number == 1 else f"{number:.0f} {noun}s"

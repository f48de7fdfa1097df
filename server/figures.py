"""Numbers as the text forms of a report write them."""

from __future__ import annotations


def microseconds(value: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{value:,.0f} µs" if value >= 100 else f"{value:.3g} µs"


def plus_minus(value: float, spread: float | None) -> str:
    """Such as " ± 1.7 %": by how much the median of another run may differ. Nothing where that is not known."""
    if spread is None or value <= 0:
        return ""
    percent = 100 * spread / value
    return " ± over 100 %" if percent >= 100 else f" ± {percent:.1f} %" if percent < 10 else f" ± {percent:.0f} %"


def milliseconds(value: float) -> str:
    """In microseconds where it is less than one."""
    return microseconds(1e3 * value) if value < 1 else f"{value:,.3g} ms" if value < 1000 else f"{value:,.0f} ms"

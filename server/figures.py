"""Numbers as the text forms of a report write them."""

from __future__ import annotations

from compiler import wording
from compiler.report import Contestant, TimingResult


def microseconds(value: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{value:,.0f} µs" if value >= 100 else f"{value:.3g} µs"


def gb_per_second(value: float) -> str:
    """Two digits, or all that stand before the point."""
    return f"{value:,.0f} GB/s" if value >= 10 else f"{value:.2g} GB/s"


def plus_minus(value: float, spread: float | None) -> str:
    """Such as " ± 1.7 %": by how much the median of another run may differ. Nothing where that is not known."""
    return "" if spread is None or value <= 0 else f" {wording.plus_minus(spread / value)}"


def beside_eager(one: Contestant, timing: TimingResult) -> str:
    """How its time compares with eager's; nothing of eager itself, and where that is not known."""
    eager = timing.of("eager")
    if eager is None or one.differs_from_eager is None:
        return ""
    return wording.beside_eager(eager.median_ms, one.median_ms, one.ratio_factor, one.differs_from_eager)


def milliseconds(value: float) -> str:
    """In microseconds where it is less than one."""
    return microseconds(1e3 * value) if value < 1 else f"{value:,.3g} ms" if value < 1000 else f"{value:,.0f} ms"

"""When two measured times differ: a rule about figures alone, which needs neither torch nor a device."""

from __future__ import annotations

#: Two medians closer than this are one: figures repeat from run to run within 1 to 2 %.
REPEATABILITY = 0.02

#: The 25th percentile, the median and the 75th percentile.
Quartiles = tuple[float, float, float]


def are_apart(a: Quartiles, b: Quartiles) -> bool:
    """Whether one is faster for a reader to rely on: the ranges between the quartiles do not overlap, and the medians
    differ by more than 2 %, which is how well a figure repeats from run to run."""
    (a_low, a_median, a_high), (b_low, b_median, b_high) = a, b
    is_clear = abs(a_median - b_median) > REPEATABILITY * min(a_median, b_median)
    return is_clear and (a_high < b_low or b_high < a_low)

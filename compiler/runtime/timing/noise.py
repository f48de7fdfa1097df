"""When two measured times differ: a rule about figures alone, which needs neither torch nor a device."""

from __future__ import annotations

from typing import NamedTuple

#: Two medians closer than this are one: figures repeat from run to run within 1 to 2 %.
REPEATABILITY = 0.02
#: Fewer samples show no spread of their own. Of three and three, all of the one are below all of the other by chance
#: alone one time in ten; of four and four, one time in 35 (the exact test of Mann and Whitney, two-sided).
FEWEST_SAMPLES = 4
#: They are taken to be wrong by up to this factor.
UNKNOWN_SPREAD = 1.5

RULE = (
    f"A difference counts where the ranges between the quartiles do not overlap and the medians differ by more than "
    f"{REPEATABILITY:.0%}. Fewer than {FEWEST_SAMPLES} samples are taken to be wrong by up to a factor of "
    f"{UNKNOWN_SPREAD}."
)


class Spread(NamedTuple):
    """How many samples there are, their 25th percentile, their median and their 75th percentile."""

    samples: int
    low: float
    median: float
    high: float

    @property
    def range(self) -> tuple[float, float]:
        """Where another run's median is to be expected."""
        if self.samples >= FEWEST_SAMPLES:
            return self.low, self.high
        return self.low / UNKNOWN_SPREAD, self.high * UNKNOWN_SPREAD


def are_apart(a: Spread, b: Spread) -> bool:
    """Whether one is faster for a reader to rely on: the ranges between the quartiles do not overlap, and the medians
    differ by more than 2 %, which is how well a figure repeats from run to run."""
    (a_low, a_high), (b_low, b_high) = a.range, b.range
    is_clear = abs(a.median - b.median) > REPEATABILITY * min(a.median, b.median)
    return is_clear and (a_high < b_low or b_high < a_low)

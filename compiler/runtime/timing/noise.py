"""When two measured times differ, and how far another run may be: rules about figures alone, which need neither torch
nor a device.

Contestants of one run are interleaved, so what drifts between runs meets all of them alike: `are_apart`. Another run
meets other clocks, neighbours and memory, of which the samples of one run tell little (Georges et al., "Statistically
Rigorous Java Performance Evaluation", 2007; Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", 2013). So
`stated_spread` has a part that was measured between runs of a device, which is data of it, beside the one that the
samples show.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
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

#: Two medians of so many samples of one normal distribution differ by less than this many times the distance between
#: its quartiles over the root of their number, 95 times in 100: 1.96 x sqrt(2) x 1.2533 / 1.349. The quartiles of few
#: samples are themselves off: the last figure over their number, found by drawing pairs of runs of 4 to 50 samples.
_OF_QUARTILES, _OF_FEW = 2.575, 1.5
#: Samples that follow each other are alike. So they are taken as blocks too, and their medians as single observations:
#: Student's t of 95 % and three degrees of freedom, for the difference of two means of four.
BLOCKS = 4
_OF_BLOCKS = 3.182 * math.sqrt(2 / BLOCKS)


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


class BetweenRuns(NamedTuple):
    """By how much two runs on a device differ, 95 times in 100, beyond what samples of one of them show: milliseconds
    of any time, and a share of it."""

    ms: float = 0.0
    share: float = 0.0


#: Where nothing is known.
UNSEEN = BetweenRuns()


def are_apart(a: Spread, b: Spread) -> bool:
    """Whether one is faster for a reader to rely on: the ranges between the quartiles do not overlap, and the medians
    differ by more than 2 %, which is how well a figure repeats from run to run."""
    (a_low, a_high), (b_low, b_high) = a.range, b.range
    is_clear = abs(a.median - b.median) > REPEATABILITY * min(a.median, b.median)
    return is_clear and (a_high < b_low or b_high < a_low)


def stated_spread(samples: Sequence[float], between: BetweenRuns) -> float:
    """By how much the median of another run may differ from this one's, 95 times in 100, in the samples' unit, which
    is milliseconds. `samples` are in the order in which they were taken."""
    median = statistics.median(samples)
    if len(samples) < FEWEST_SAMPLES:
        return (UNKNOWN_SPREAD - 1) * median
    factor = _OF_QUARTILES * (1 + _OF_FEW / len(samples)) / math.sqrt(len(samples))
    within = factor * (percentile(samples, 75) - percentile(samples, 25))
    if len(samples) >= 2 * BLOCKS:
        ends = [place * len(samples) // BLOCKS for place in range(BLOCKS + 1)]
        blocks = [statistics.median(samples[start:end]) for start, end in pairwise(ends)]
        within = max(within, _OF_BLOCKS * statistics.stdev(blocks))
    return math.hypot(within, between.ms + between.share * median)


def percentile(samples: Sequence[float], percent: float) -> float:
    """Linear interpolation between the two nearest samples, as numpy's default."""
    ordered = sorted(samples)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

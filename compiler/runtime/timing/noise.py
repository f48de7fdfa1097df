"""How far another run may be, of a time and of the ratio of two: rules about figures alone, which need neither torch
nor a device.

Another run meets other clocks, neighbours and memory, of which the samples of one run tell little (Georges et al.,
"Statistically Rigorous Java Performance Evaluation", 2007; Kalibera and Jones, "Rigorous Benchmarking in Reasonable
Time", 2013). So each spread has a part that was measured between runs of a device, which is data of it, beside the one
that the samples show. What drifts meets interleaved contestants alike: their ratio has a spread of its own, and whether
one is faster is said by that and nothing else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

#: Fewer samples show no spread of their own. Of three and three, all of the one are below all of the other by chance
#: alone one time in ten; of four and four, one time in 35 (the exact test of Mann and Whitney, two-sided).
FEWEST_SAMPLES = 4
#: They are taken to be wrong by up to this factor.
UNKNOWN_SPREAD = 1.5

RULE = (
    "A difference counts where the ratio of the medians is further from 1 than its spread: in 95 of 100 other runs it "
    f"is then on the same side. Fewer than {FEWEST_SAMPLES} samples are taken to be wrong by up to a factor of "
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


class BetweenRuns(NamedTuple):
    """By how much two runs on a device differ, 95 times in 100, beyond what samples of one of them show: milliseconds
    of any time, and a share of it; and the share by which the ratio of two interleaved contestants does."""

    ms: float = 0.0
    share: float = 0.0
    of_ratio: float = 0.0


#: Where nothing is known.
UNSEEN = BetweenRuns()


class Ratio(NamedTuple):
    """Of two medians. `factor` is by how much that of another run may be larger or smaller, 95 times in 100: 1.04 of
    one that may be 4 % off."""

    value: float
    factor: float

    @property
    def is_clear(self) -> bool:
        """Whether one of the two is faster for a reader to rely on."""
        return max(self.value, 1 / self.value) > self.factor


def stated_spread(samples: Sequence[float], between: BetweenRuns) -> float:
    """By how much the median of another run may differ from this one's, 95 times in 100, in the samples' unit, which
    is milliseconds. `samples` are in the order in which they were taken."""
    median = statistics.median(samples)
    if len(samples) < FEWEST_SAMPLES:
        return (UNKNOWN_SPREAD - 1) * median
    return math.hypot(_shown(samples), between.ms + between.share * median)


def ratio_of(one: Sequence[float], two: Sequence[float], between: BetweenRuns = UNSEEN) -> Ratio:
    """How many times the second's median the first's is. Samples of the same position are of one round."""
    medians = [max(statistics.median(samples), 1e-9) for samples in (one, two)]
    logs = [math.log(max(a, 1e-9) / max(b, 1e-9)) for a, b in zip(one, two, strict=False)]
    if len(logs) < FEWEST_SAMPLES:
        return Ratio(medians[0] / medians[1], UNKNOWN_SPREAD**2)
    of_times = math.hypot(*(between.ms / median for median in medians))
    return Ratio(medians[0] / medians[1], math.exp(min(math.hypot(_shown(logs), of_times + between.of_ratio), 20.0)))


def _shown(samples: Sequence[float]) -> float:
    """What the samples alone show of how far another run's median may be."""
    factor = _OF_QUARTILES * (1 + _OF_FEW / len(samples)) / math.sqrt(len(samples))
    within = factor * (percentile(samples, 75) - percentile(samples, 25))
    if len(samples) < 2 * BLOCKS:
        return within
    ends = [block * len(samples) // BLOCKS for block in range(BLOCKS + 1)]
    blocks = [statistics.median(samples[start:end]) for start, end in pairwise(ends)]
    return max(within, _OF_BLOCKS * statistics.stdev(blocks))


def percentile(samples: Sequence[float], percent: float) -> float:
    """Linear interpolation between the two nearest samples, as numpy's default."""
    ordered = sorted(samples)
    rank = (len(ordered) - 1) * percent / 100
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)

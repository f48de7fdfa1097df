"""Small programs, most of one kernel, that span what a kernel can be: how it walks memory, what it computes, how much.

A row gives a function and its inputs at the size for a large GPU; on a CPU every size is cut to 64, which keeps the
relations between shapes. Those of `CHOICES` are where a fusion may not pay: what is wanted are both ways to run them.
"""

from __future__ import annotations

from bench.patterns import Case
from bench.predictions.micro.choices import choices
from bench.predictions.micro.pointwise import arithmetic, pointwise
from bench.predictions.micro.reductions import reductions, scans_and_scatters
from bench.predictions.micro.walks import gathers, walks
from bench.predictions.micro.windows import windows

SINGLE: tuple[Case, ...] = (
    *pointwise(), *arithmetic(), *walks(), *gathers(), *windows(), *reductions(), *scans_and_scatters(),
)  # fmt: skip
CHOICES: tuple[Case, ...] = tuple(choices())

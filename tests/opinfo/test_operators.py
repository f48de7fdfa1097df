"""One float32 sample of every operator in torch's own database, compiled by us, equals eager.

The sweep over all samples, dtypes and gradients is `fusionscope bench --suite opinfo`.
"""

from __future__ import annotations

import pytest
import torch

from bench.opinfo import database
from bench.opinfo.database import Sample
from bench.opinfo.run import Outcome, run_samples
from compiler.runtime.cpp.instruction_sets import SETTING, runnable

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("others_frozen")]

#: Operators that are compiled together: the C++ compiler's start is expensive.
TOGETHER = 48
NAMES = sorted(database.operators())


def _samples(names: list[str]) -> list[Sample]:
    jobs = [job for name in names for job in database.jobs(name, "cpu", (torch.float32,), with_backward=False)]
    return [sample for job in jobs for sample in database.samples(job, "cpu", 1, seed=0)]


@pytest.mark.parametrize("first", range(0, len(NAMES), TOGETHER), ids=lambda first: f"{NAMES[first]}...")
def test_first_sample_equals_eager(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Operators take the levels of instructions in turn: compiling each for all of them would take too long, and
    # tests/codegen/cpp holds that the levels agree.
    monkeypatch.setenv(SETTING, runnable()[first // TOGETHER % len(runnable())])
    at: list[str] = []
    outcomes: list[Outcome] = []
    run_samples(
        _samples(NAMES[first : first + TOGETHER]),
        tell=lambda what, sample: at.append(f"{what} {sample.job}"),
        report=outcomes.append,
    )
    wrong = [f"{o.job} ({o.inputs}): {o.status}: {o.sentence}" for o in outcomes if o.status in ("wrong", "failed")]
    assert not wrong, "\n".join(wrong)
    refused = {o.job.operator for o in outcomes if o.status == "refused"}
    assert refused <= {name for name in NAMES if name.startswith("jiterator")}, "eager takes no such sample"


def test_nearly_every_operator_has_a_float32_sample() -> None:
    jobs = [job for name in NAMES for job in database.jobs(name, "cpu", (torch.float32,), with_backward=False)]
    assert len(jobs) >= 670

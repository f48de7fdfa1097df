"""The process that samples run in: `python -m bench.opinfo.worker`, started by `bench/opinfo/sweep.py`.

It reads its orders from standard input and writes, one JSON object a line, which sample it is at (so that a crash can
be blamed) and what came of each.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from bench.environment import describe
from bench.opinfo import database
from bench.opinfo.database import Job, Sample
from bench.opinfo.run import Outcome, run_samples


def main() -> int:
    orders: dict[str, Any] = json.loads(sys.stdin.readline())
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    # The processes of a sweep share the cores: threads of their own would only wait for each other.
    torch.set_num_threads(1)
    device = torch.device(orders["device"])
    with os.fdopen(orders["channel"], "w", buffering=1) as channel, tempfile.TemporaryDirectory() as kernels:
        os.environ["FUSIONSCOPE_CACHE_DIR"] = kernels

        def send(event: str, **content: Any) -> None:
            channel.write(json.dumps({"event": event, **content}) + "\n")

        def report(outcome: Outcome) -> None:
            content = dataclasses.asdict(outcome)
            send("outcome", **{**content, "job": place_of(outcome.job)})

        def tell(what: str, sample: Sample) -> None:
            send("at", what=what, job=place_of(sample.job), number=sample.number)

        environment = describe(device, 0.0, orders["seed"])
        del environment["copy_bandwidth_gb_per_s"]  # nothing is timed here
        send("environment", environment=environment)
        run_samples(_samples(orders, send), tell, report)
        send("end")
    return 0


def place_of(job: Job) -> list[str | int]:
    return [job.operator, str(job.dtype).removeprefix("torch."), job.direction, job.share, job.shares]


def _samples(orders: dict[str, Any], send: Any) -> Iterator[Sample]:
    """The samples of all jobs of the orders, but those that were reported before."""
    for operator, dtype, direction, share, shares, done in orders["jobs"]:
        job = Job(operator, getattr(torch, dtype), direction, share, shares)
        finished = set(done)
        send("at", what="sampling", job=place_of(job), number=-1)
        try:
            for sample in database.samples(job, orders["device"], orders["count"], orders["seed"]):
                if sample.number not in finished:
                    yield sample
        except Exception as error:  # some cannot be made on this device or without an optional package
            send("unsampled", job=place_of(job), sentence=f"{type(error).__name__}: {str(error)[:200]}")
        send("job", job=place_of(job))


if __name__ == "__main__":
    sys.exit(main())

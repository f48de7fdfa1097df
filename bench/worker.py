"""The process that cases run in: `python -m bench.worker`, started by `bench/suite.py`.

It reads its orders, one JSON object, from standard input, and writes one JSON object a line to the file descriptor that
they name: what it is about to run, so that a crash can be blamed, and the result of each case. It ends when all cases
are done, or when a kernel has left the GPU unusable for this process.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from bench.contest import DeviceLost, Setup, run_case, sentence_of, start_compilers, synchronise
from bench.convolutions import CONVOLUTIONS
from bench.environment import copy_bandwidth, describe
from bench.models import MODELS
from bench.models.trial import run_model
from bench.patterns import PATTERNS, Case
from bench.process import BATCH_MARK
from bench.train import TRAINING
from bench.turns import Turns
from bench.wide import WIDE
from bench.wide.share import run_share
from compiler.runtime.timing.stopwatch import stopwatch

Send = Callable[..., None]
#: Suites whose cases have no floor of bytes: whole models, of which a floor would say little.
WITHOUT_FLOOR = ("models", "train")
#: Suites of many short programs, of which several processes prepare a share each.
SHARED: Mapping[str, Mapping[str, Case]] = {"wide": WIDE, "convolutions": CONVOLUTIONS}


def main() -> int:
    orders: dict[str, Any] = json.loads(sys.stdin.readline())
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    with os.fdopen(orders["channel"], "w", buffering=1) as channel:

        def send(event: str, **content: Any) -> None:
            channel.write(json.dumps({"event": event, **content}) + "\n")

        return run(orders, send)


def run(orders: dict[str, Any], send: Send) -> int:
    """All cases of the orders, in order; 1 if it had to stop before the last."""
    device = torch.device(orders["device"])
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
    if orders.get("suite") == "train":
        torch.set_float32_matmul_precision("high")  # as the peer's own figure was taken
    torch._dynamo.config.fail_on_recompile_limit_hit = True  # it would go on with eager, which is not the contestant
    turns, watch = Turns(orders.get("turns")), stopwatch(device)
    bandwidth = orders["bandwidth"]
    if bandwidth is None and orders.get("suite") not in WITHOUT_FLOOR:
        with turns.alone():
            bandwidth = copy_bandwidth(device, watch)
    send("environment", environment=describe(device, bandwidth, orders["seed"]), bandwidth=bandwidth)
    start_compilers(device, orders["compilers"], lambda name: send("start", case="", what=name))
    setup = Setup(
        device, orders["size"], orders["seed"], orders["repeat"], orders["max_seconds"], bandwidth or math.nan, watch,
        orders.get("batch") or 1, orders.get("is_timed", True), getattr(torch, orders.get("dtype", "float32")), turns,
    )  # fmt: skip
    if orders.get("suite") in SHARED:
        return _run_share(orders["cases"], SHARED[orders["suite"]], setup, send)
    for case, contestants in orders["cases"].items():

        def starting(what: str, case: str = case) -> None:
            send("start", case=case, what=what)

        try:
            send("case", case=case, result=_run(orders, case, contestants, setup, starting))
            gc.collect()  # compiled code and its tensors hold each other
        except DeviceLost as lost:
            send("lost", case=case, what=lost.contestant, error=str(lost))
            return 1
        except Exception as error:  # a case that fails is a result, and the next one goes on
            send("case", case=case, result={"errors": {"case": sentence_of(error)}})
            if not _is_usable(device):
                return 1
    return 0


def _run_share(cases: dict[str, list[str]], known: Mapping[str, Case], setup: Setup, send: Send) -> int:
    try:
        run_share(cases, known, setup, send)
    except DeviceLost as lost:
        send("lost", case="", what=lost.contestant, error=str(lost))
        return 1
    return 0


def _run(
    orders: dict[str, Any], case: str, contestants: list[str], setup: Setup, starting: Callable[[str], None]
) -> dict[str, Any]:
    if orders.get("suite") in WITHOUT_FLOOR:
        name, _, batch = case.partition(BATCH_MARK)
        model = (MODELS if orders["suite"] == "models" else TRAINING)[name]
        size = int(batch) if batch else orders.get("batch") or model.batch or 1
        return run_model(model, contestants, replace(setup, batch=size), starting)
    return run_case(PATTERNS[case], contestants, setup, starting)


def _is_usable(device: torch.device) -> bool:
    try:
        synchronise(device)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

"""Running the cases of a suite in a process of their own, which is replaced when a case kills it.

A generated kernel can end the process with a segmentation fault, or leave the GPU unusable, or never return. The
contestant that did so loses this case, with a sentence of what happened; the case is run again without it, and the rest
of the suite goes on.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from bench.contest import CONTESTANTS, KNOWN
from bench.process import run_worker

#: Seconds without a word from the process after which it is ended, by suite: a large model takes minutes to compile.
PATIENCE_S = {"patterns": 240.0, "wide": 600.0, "convolutions": 600.0, "models": 900.0, "train": 900.0}
#: Cases that one process runs. A model has one of its own: what it compiled and holds must not weigh on the next.
CASES_OF_ONE_PROCESS = {"patterns": None, "wide": 24, "convolutions": 2, "models": 1, "train": 1}


#: Environment variables of the processes, by suite. Many of these suites' run at one time and have the cores.
SETTINGS = {name: {"TORCHINDUCTOR_COMPILE_THREADS": "1"} for name in ("wide", "convolutions")}


@dataclass(frozen=True)
class Request:
    """What to run. `device` is torch's name of it; `size` names the field of a case that holds its inputs. `batch`,
    `is_timed` and `dtype`, torch's name of one, are of models alone."""

    cases: tuple[str, ...]
    device: str
    size: str
    contestants: tuple[str, ...] = CONTESTANTS
    seed: int = 0
    repeat: int = 30
    max_seconds: float = 3.0
    suite: str = "patterns"
    batch: int | None = 1
    is_timed: bool = True
    dtype: str = "float32"
    #: Processes at one time, of suites that give each case its own. They prepare together and measure one by one.
    processes: int = 1


@dataclass
class Progress:
    """How far a run is: the results so far, and which contestants were taken out of which case, and why."""

    environment: dict[str, Any] = field(default_factory=dict)
    bandwidth: float | None = None
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    taken_out: dict[str, dict[str, str]] = field(default_factory=dict)
    underway: tuple[str, str] | None = None


def run_suite(request: Request, on_result: Callable[[Progress], None]) -> Progress:
    """Run every case; `on_result` is called after each, so that nothing is lost if this process is ended."""
    progress = Progress()
    share = CASES_OF_ONE_PROCESS[request.suite]
    if share is None or request.processes == 1:
        _run_in_turn(request, request.cases, progress, on_result)
        return progress
    with (
        tempfile.NamedTemporaryFile(prefix="fusionscope-turns-") as turns,
        ThreadPoolExecutor(request.processes) as pool,
    ):
        told = Lock()

        def run_share(cases: Sequence[str]) -> None:
            own = Progress()

            def keep(_: Progress) -> None:
                with told:
                    progress.environment = progress.environment or own.environment
                    progress.results.update(own.results)
                    on_result(progress)

            _run_in_turn(request, cases, own, keep, turns.name)

        shares = math.ceil(max(len(request.cases) / share, min(request.processes, len(request.cases))))
        # Neighbours of one file are alike in cost, so that each share takes some of every file.
        for done in [pool.submit(run_share, request.cases[first::shares]) for first in range(shares)]:
            done.result()
    return progress


def _run_in_turn(
    request: Request,
    cases: Sequence[str],
    progress: Progress,
    on_result: Callable[[Progress], None],
    turns: str | None = None,
) -> None:
    """Each case after the other, as many in one process as the suite allows."""
    while remaining := [name for name in cases if name not in progress.results]:
        progress.underway = None
        next_ones = remaining[: CASES_OF_ONE_PROCESS[request.suite]]
        ending = _run_worker(request, next_ones, progress, on_result, turns)
        if progress.underway is None and all(name not in progress.results for name in next_ones):
            raise RuntimeError(f"the measuring process did not start: {ending}")
        if progress.underway is not None:
            _blame(progress, *progress.underway, ending)
            on_result(progress)


def _blame(progress: Progress, case: str, what: str, ending: str) -> None:
    """Take the contestant that was running out of the case; a case that eager or timing fails is over.

    The case without a name is the trivial one that starts the compilers."""
    if what in KNOWN and what != "eager":
        progress.taken_out.setdefault(case, {})[what] = ending
    else:
        progress.results[case] = {"errors": {**progress.taken_out.get(case, {}), what: ending}}


def _run_worker(
    request: Request,
    remaining: list[str],
    progress: Progress,
    on_result: Callable[[Progress], None],
    turns: str | None,
) -> str:
    """One process over the remaining cases; how it ended, in words."""
    said: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        said.extend(filter(None, [_note(message, progress)]))
        if message["event"] == "case":
            on_result(progress)

    orders = {**_orders(request, remaining, progress), "turns": turns}
    ending = run_worker("bench.worker", orders, hear, PATIENCE_S[request.suite], SETTINGS.get(request.suite))
    return said[-1] if said and not ending.startswith("nothing was heard") else ending


def _orders(request: Request, remaining: list[str], progress: Progress) -> dict[str, Any]:
    cases = {
        name: [one for one in request.contestants if one not in progress.taken_out.get(name, {})] for name in remaining
    }
    compilers = [name for name in KNOWN if name != "eager" and any(name in names for names in cases.values())]
    return {
        "cases": cases,
        "compilers": [name for name in compilers if name not in progress.taken_out.get("", {})],
        "device": request.device,
        "size": request.size,
        "seed": request.seed,
        "repeat": request.repeat,
        "max_seconds": request.max_seconds,
        "bandwidth": progress.bandwidth,
        "suite": request.suite,
        "batch": request.batch,
        "is_timed": request.is_timed,
        "dtype": request.dtype,
    }


def _note(message: dict[str, Any], progress: Progress) -> str | None:
    """Remember what the worker said; the sentence of an error that will end it, if this is one."""
    case = message.get("case", "")
    if message["event"] == "environment":
        progress.environment = progress.environment or message["environment"]
        progress.bandwidth = progress.bandwidth or message["bandwidth"]
    elif message["event"] == "case":
        result = message["result"]
        result["errors"] = {**progress.taken_out.get(case, {}), **result["errors"]}
        progress.results[case] = result
        progress.underway = None
    else:
        progress.underway = (case, message["what"])
    error = message.get("error")
    return str(error) if error else None

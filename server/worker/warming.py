"""What a spare does while it waits: it explores one tiny program, so that the first steps of all that an exploration
uses are behind it when its job comes. On a GPU that starts CUDA and compiles a first kernel.

Nothing of it may show in the job's report. What the program prints goes nowhere; files are deleted; Dynamo is reset and
its counters are emptied; random numbers, the environment and names are as they were.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.options import Options, Timing

if TYPE_CHECKING:
    from compiler.report import Report
    from server.worker.snippet import Explore

_TIMING = Timing(max_seconds=0.05)
"""Enough to have timed something once."""


class _Interrupted(BaseException):
    """A job is there. No `except Exception` on the way keeps it."""


def warm_up(explore: Explore, source: str, folder: Path, is_wanted: Callable[[], bool]) -> dict[str, float]:
    """Explores `source` in this process, whose folder is `folder`, and forgets it. Raises what `explore` raises.

    Goes no further than to the end of a stage once `is_wanted` says that a job is there. Returns how many seconds each
    stage took.
    """
    took: dict[str, float] = {}

    def look(report: Report) -> None:
        took.update({stage.name: round(stage.ms / 1e3, 3) for stage in report.stages})
        if is_wanted():
            raise _Interrupted

    with _silence(), _kept_state(), contextlib.suppress(_Interrupted):
        explore(source, Options(timing=_TIMING), look)
    _forget_torch()
    _empty(folder)
    gc.collect()
    gc.freeze()
    return took


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Whatever is written below Python goes nowhere too."""
    kept = {number: os.dup(number) for number in (1, 2)}
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nothing, number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in kept.items():
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nothing)


@contextlib.contextmanager
def _kept_state() -> Iterator[None]:
    environment, folder = dict(os.environ), os.getcwd()
    path = list(sys.path)
    random_state = random.getstate()
    torch: Any = sys.modules.get("torch")
    torch_state = torch.get_rng_state() if torch is not None else None
    numpy: Any = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:] = path
        random.setstate(random_state)
        if torch_state is not None:
            torch.set_rng_state(torch_state)
        if numpy_state is not None:
            numpy.random.set_state(numpy_state)


def _forget_torch() -> None:
    torch: Any = sys.modules.get("torch")
    if torch is None or "torch._dynamo" not in sys.modules:
        return
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    names: Any = torch._dynamo.bytecode_transformation
    if hasattr(names, "_unique_id_counter"):  # numbers the compiled functions
        names._unique_id_counter = itertools.count()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

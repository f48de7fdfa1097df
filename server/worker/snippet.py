"""The confined process that runs one snippet and ends.

It begins as a spare: while it has no job it warms up (`warming.py`), and only then waits for one. A process that finds
its request waiting already does without. From the moment the snippet runs, it can change or forge all that is here. So
nothing that this process says is believed beyond "this is what the snippet's own process wrote".
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import inspect
import os
import resource
import select
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

from compiler.defects import message_of, traceback_of
from compiler.options import Options
from compiler.report import Error, Report
from server.sandbox import begin, private_memory
from server.wire.parts import Sent
from server.worker import records
from server.worker.records import Begun, Request, Warm

REPORTS = 3
"""The pipe to the worker: records."""

CRASHES = 4
"""A second name of the output pipe, for the last words of a crash: the compiler redirects stdout and stderr."""

REQUESTS = 5
"""The pipe from the worker: one request, then a byte for each lease that is granted."""

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Set for the zygote, which must have one thread; what a job starts shall not inherit them."""

Lease = Callable[[], AbstractContextManager[None]]


class Explore(Protocol):
    """`compiler.pipeline.explore`, or a small program in its place."""

    def __call__(
        self,
        source: str,
        options: Options | None = None,
        on_stage: Callable[[Report], None] | None = None,
        *,
        lease: Lease | None = None,
    ) -> Report: ...


@dataclass(frozen=True)
class Preparation:
    """What a process does before its snippet. `imports` are modules that the zygote has not come to yet; those of
    spares are what a spare has time for, and a job that waits for nothing else does without."""

    imports: tuple[str, ...]
    imports_of_spares: tuple[str, ...]
    warm_source: str | None
    threads: int


def main(folder: Path, explore: Explore, preparation: Preparation) -> NoReturn:
    """All that the process does, its folder being `folder`. Never returns into the zygote's loop."""
    try:
        gc.enable()
        for name in _ONE_THREAD:
            os.environ.pop(name, None)
        point_caches_to(folder)
        # A crash in native code then leaves the Python stack, with the snippet's line, as the last output.
        faulthandler.enable(file=CRASHES)
        _set_threads(preparation.threads)
        for name in preparation.imports:
            importlib.import_module(name)
        took = {} if _has_request() else _warm(folder, explore, preparation)
        prepared = _prepared(explore)
        records.write_record(REPORTS, records.WARM, Warm(seconds=took).model_dump_json().encode())
        taken = private_memory()
        request = records.read_request(REQUESTS)
        begin(request.limits, taken)
        begun = Begun(processor_seconds=_processor_seconds())
        records.write_record(REPORTS, records.BEGUN, begun.model_dump_json().encode())
        run(prepared, request)
        sys.stdout.flush()
        sys.stderr.flush()
    except EOFError:  # the worker needs this process no more
        _leave(0)
    except BaseException:  # noqa: BLE001 - see above
        traceback.print_exc()
        _leave(1)
    _leave(0)


def _processor_seconds() -> float:
    """Of this process, and of those that it started and that have ended: compilers, while it warmed up."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _warm(folder: Path, explore: Explore, preparation: Preparation) -> dict[str, float]:
    """Seconds of each step. What most jobs need comes first: a job may be there before the last."""
    from server.worker.warming import warm_up

    started = time.monotonic()
    took: dict[str, float] = {}
    if preparation.warm_source is not None:
        took = warm_up(explore, preparation.warm_source, folder, _has_request)
        took["exploration"] = round(time.monotonic() - started, 3)
    for name in preparation.imports_of_spares:
        if not _has_request():
            before = time.monotonic()
            importlib.import_module(name)
            took[name] = round(time.monotonic() - before, 3)
    return took


def _prepared(explore: Explore) -> Explore:
    """The same, where it is the compiler, with what that notes of names before a snippet: it takes a millisecond."""
    if "changes" not in inspect.signature(explore).parameters:
        return explore
    from compiler.snippet_changes import SnippetChanges

    changes: dict[str, Any] = {"changes": SnippetChanges()}
    return partial(explore, **changes)


def run(explore: Explore, request: Request) -> None:
    """Explores, and sends what changed of the report after each stage and at the end."""
    sent = Sent()
    latest: Report | None = None

    def send(report: Report) -> None:
        nonlocal latest
        latest = report
        changed = sent.changed(report)
        if changed:
            records.write_record(REPORTS, records.REPORT, changed)

    try:
        report = explore(request.source, request.options, send, lease=_lease)
    except Exception as failure:  # noqa: BLE001 - whatever went wrong is what the report has to tell
        ran_out = _is_lack_of_memory(failure)
        status, error = ("out_of_memory", _out_of_memory(failure)) if ran_out else ("crashed", _internal_error(failure))
        known = latest or Report(source=request.source)
        report = known.model_copy(update={"status": status, "error": error})
    send(report)


def point_caches_to(folder: Path) -> None:
    """torch and Triton look these up each time they compile; a job never shares a cache with another."""
    os.environ.update(
        HOME=str(folder),
        TMPDIR=str(folder),
        XDG_CACHE_HOME=str(folder / "cache"),
        FUSIONSCOPE_CACHE_DIR=str(folder / "fusionscope"),
        TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"),
        TRITON_CACHE_DIR=str(folder / "triton"),
        TORCH_EXTENSIONS_DIR=str(folder / "extensions"),
    )
    tempfile.tempdir = None


@contextlib.contextmanager
def _lease() -> Iterator[None]:
    records.write_record(REPORTS, records.WANTS_LEASE)
    os.read(REQUESTS, 1)
    try:
        yield
    finally:
        records.write_record(REPORTS, records.RETURNS_LEASE)


def _has_request() -> bool:
    waiting = select.poll()
    waiting.register(REQUESTS, select.POLLIN)
    return bool(waiting.poll(0))


def _set_threads(threads: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def _is_lack_of_memory(failure: Exception) -> bool:
    # torch has an error of its own for the GPU, and for the CPU only a sentence.
    by_type = isinstance(failure, MemoryError) or type(failure).__name__ == "OutOfMemoryError"
    return by_type or "can't allocate memory" in str(failure)


def _out_of_memory(failure: Exception) -> Error:
    if "CUDA" in str(failure):
        return Error(
            type="OutOfMemory",
            message="The snippet asked for more memory than the GPU has left.",
            hint="Use smaller shapes.",
        )
    return Error(
        type="OutOfMemory",
        message="The snippet asked for more memory than an exploration may use.",
        hint="Use smaller shapes, or raise the setting `memory_gib` of the service.",
    )


def _internal_error(failure: Exception) -> Error:
    return Error(
        type=type(failure).__name__,
        message=f"The compiler failed: {message_of(failure)}",
        hint="This is a defect of the compiler, not of the snippet; the traceback says where.",
        traceback=traceback_of(failure),
    )


def _leave(code: int) -> NoReturn:
    """Ends the process at once: exit handlers have nothing to do in a process that is thrown away."""
    ctypes.CDLL(None).fflush(None)
    os._exit(code)

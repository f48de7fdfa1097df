"""The child: one confined process that runs one snippet and ends.

Everything here runs beside the snippet, which can change or forge all of it. So nothing that the child says is
believed by the parent beyond "this is what the snippet's own process wrote".
"""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from compiler.options import Options
from compiler.report import Error, Report
from server.sandbox import kernel
from server.sandbox.confine import Limits, confine

REPORTS = 3
"""The descriptor that reports are written to, one JSON line each."""

CRASHES = 4
"""A second name of the output pipe, for the last words of a crash: the compiler redirects stdout and stderr."""

Explore = Callable[[str, Options, Callable[[Report], None]], Report]


def isolate(folder: Path, limits: Limits, reports: int, output: int) -> list[str]:
    """Makes this process, just forked, a job of its own: session, descriptors, folder, environment, confinement."""
    os.setsid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    _keep_only(reports, output)
    os.chdir(folder)
    _point_caches_to(folder)
    layers = confine(folder, limits)
    # A crash in native code then leaves the Python stack, with the snippet's line, as the last output.
    faulthandler.enable(file=CRASHES)
    return layers


def run(explore: Explore, source: str, options: Options, threads: int) -> None:
    """Explores, and sends the report after each stage and at the end."""
    _set_threads(threads)
    latest = Report(source=source)

    def send_so_far(report: Report) -> None:
        nonlocal latest
        latest = report
        _send(report)

    try:
        report = explore(source, options, send_so_far)
    except Exception as failure:  # noqa: BLE001 - whatever went wrong is what the report has to tell
        ran_out = _is_lack_of_memory(failure)
        status, error = ("out_of_memory", _out_of_memory(failure)) if ran_out else ("crashed", _internal_error(failure))
        report = latest.model_copy(update={"status": status, "error": error})
    _send(report)


def _send(report: Report) -> None:
    remaining = memoryview(report.model_dump_json().encode("utf-8", errors="replace") + b"\n")
    while remaining:
        remaining = remaining[os.write(REPORTS, remaining) :]


def _keep_only(reports: int, output: int) -> None:
    """Closes every descriptor but stdin (empty), stdout, stderr and `CRASHES` (the output pipe), and the reports'."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    wanted = {0: nothing, 1: output, 2: output, REPORTS: reports, CRASHES: output}
    # All first move out of the way of the numbers that they will get.
    moved = {number: fcntl.fcntl(descriptor, fcntl.F_DUPFD, CRASHES + 1) for number, descriptor in wanted.items()}
    for number, descriptor in moved.items():
        os.dup2(descriptor, number, inheritable=number <= 2)
    os.closerange(CRASHES + 1, min(os.sysconf("SC_OPEN_MAX"), 65536))


def _point_caches_to(folder: Path) -> None:
    # torch and Triton look these up each time they compile; a job never shares a cache with another.
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
    import traceback

    return Error(
        type=type(failure).__name__,
        message=f"The compiler failed: {failure}",
        hint="This is a defect of the compiler, not of the snippet; the traceback says where.",
        traceback="".join(traceback.format_exception(failure)),
    )


def leave(code: int) -> None:
    """Ends the process at once: exit handlers have nothing to do in a process that is thrown away."""
    ctypes.CDLL(None).fflush(None)
    os._exit(code)

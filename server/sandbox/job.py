"""The job's own process, from its fork to the first line of what it runs.

Until `main` is called this is trusted code that gives up one right after the other; from then on nothing that this
process says is believed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from server.sandbox import processes
from server.sandbox.descriptors import keep_only

FAILED_TO_CONFINE = 97
"""The exit code of a job that could not be confined; the reason goes to the zygote."""

KEPT_VARIABLES = (
    *("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CC", "CXX"),
    *("CUDA_", "CUBLAS_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_", "PYTHON", "PYTORCH_", "TORCH_", "TORCHINDUCTOR_"),
    "TRITON_",
)
"""Names, and beginnings of names, of the environment variables that a job keeps of the zygote's."""


def become_job(
    *,
    status: int,
    descriptors: Mapping[int, int],
    folder: Path,
    confine: Callable[[], None],
    main: Callable[[Path], NoReturn],
    guard: int,
) -> NoReturn:
    """Never returns. Calls `main` with the job's folder once this process is confined. `guard` is its parent.

    A `main` that returns or raises ends the process with code 1; it should leave by `os._exit`.
    """
    told = status
    try:
        for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_DFL)
        os.setsid()
        os.umask(0o077)
        number = max({2, *descriptors}) + 1
        keep_only({**descriptors, number: status})
        told = number
        os.chdir(folder)
        _make_environment(folder)
        confine()
        processes.die_with_parent(guard, signal.SIGKILL)
        os.close(told)
    except BaseException as failure:  # noqa: BLE001 - whatever it is, the snippet must not run
        tell_failure(told, failure)
        os._exit(FAILED_TO_CONFINE)
    try:
        main(folder)
    except BaseException:  # noqa: BLE001 - a job must never return into the code of the process that it was forked from
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _make_environment(folder: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT_VARIABLES)}
    os.environ.clear()
    os.environ.update(kept, HOME=str(folder), TMPDIR=str(folder), USER="sandbox", LOGNAME="sandbox")
    tempfile.tempdir = None


def tell_failure(status: int, failure: BaseException) -> None:
    line = json.dumps({"failure": f"{type(failure).__name__}: {failure}"[:4000]}).encode() + b"\n"
    os.write(status, line)

"""How a zygote begins: a program with one socket, and with nothing of the environment but what it needs.

Its configuration comes later, by that socket. So the first one can be started before the worker has imported what it
is made of and has found out which tier works here: it imports torch meanwhile. This module imports next to nothing.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from server.passed_on import passed_on

# Descriptor 3 is what the zygote expects, and what subprocess may have given to something else.
_ENTRY = (
    "import gc, importlib, os, sys\n"
    "gc.disable()\n"  # nothing that is imported is garbage
    "channel, *early = sys.argv[1:]\n"
    "os.dup2(int(channel), 3) == 3 or os.abort()\n"
    "for name in early: importlib.import_module(name)\n"
    "from server.worker.zygote import main\n"
    "raise SystemExit(main())"
)


@dataclass(frozen=True)
class Started:
    """A zygote that waits for its configuration at the other end of `channel`. Where that is closed, it ends."""

    process: subprocess.Popen[bytes]
    channel: socket.socket


def start(*early: str) -> Started:
    """Starts one that first imports the modules `early`, outside of the sandbox that it enters later. Raises
    `OSError`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            (sys.executable, "-P", "-c", _ENTRY, str(theirs.fileno()), *early),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
    ours.setblocking(False)
    return Started(process, ours)


def _environment() -> dict[str, str]:
    """What names folders is set once there is one (`snippet.point_caches_to`)."""
    return passed_on() | {
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Believe /proc/cpuinfo about vector instructions: trying each with a compiler takes every job six seconds.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    }

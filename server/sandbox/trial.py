"""`python -m server.sandbox.trial`: enters a sandbox and runs one job in it, which tries what it must not be able to.

Reads a `SandboxConfig` from stdin and writes a JSON list to stdout, of the sentences that say what is wrong; it is
empty where the tier works. `choose_tier` starts it, as a process of its own, since a sandbox is entered for good.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from server.sandbox import kernel, processes
from server.sandbox.config import CANARY, NoSandbox, SandboxConfig
from server.sandbox.limits import GIB, MIB, JobLimits
from server.sandbox.sandbox import Sandbox

_LIMITS = JobLimits(
    cpu_seconds=30,
    memory_bytes=32 * GIB,
    processes=64,
    open_files=256,
    file_bytes=16 * MIB,
    disk_bytes=64 * MIB,
    disk_files=1024,
    shared_memory_bytes=16 * MIB,
)


def main() -> NoReturn:
    starter = os.getppid()
    processes.die_with_parent(starter, signal.SIGKILL)
    config = SandboxConfig.model_validate_json(sys.stdin.buffer.read())
    try:
        sandbox = Sandbox(config)
        sandbox.enter()
        job = sandbox.fork(_LIMITS, {1: 1, 2: 2}, lambda folder: _try_all(folder, config, starter))
        ended = job.wait()
    except (OSError, NoSandbox, RuntimeError) as failure:
        _tell([str(failure)])
    if ended.failure is not None:
        _tell([ended.failure])
    if ended.exit_code != 0:
        _tell([f"its trial job ended with code {ended.exit_code}, signal {ended.signal}"])
    os._exit(0)


def _tell(problems: list[str]) -> NoReturn:
    os.write(1, json.dumps(problems).encode())
    os._exit(0)


def _try_all(folder: Path, config: SandboxConfig, starter: int) -> NoReturn:
    """In the job. What is refused raises OSError."""
    outside = config.folder.parent
    libc = ctypes.CDLL(None, use_errno=True)

    def succeeds(result: int) -> None:
        if result < 0:
            raise OSError(ctypes.get_errno(), "refused")

    refused: dict[str, Callable[[], object]] = {
        "a job read a file outside of its folder": lambda: (outside / CANARY).read_bytes(),
        "a job wrote outside of its folder": lambda: (outside / "written").write_bytes(b""),
        "a job got a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "a job could trace": lambda: succeeds(libc.ptrace(0, 0, 0, 0)),
        "a job got namespaces of its own": lambda: kernel.unshare(kernel.CLONE_NEWUSER),
        "a job may signal the worker": lambda: os.kill(starter, 0),
    }
    problems = [problem for problem, attempt in refused.items() if _works(attempt)]
    allowed: dict[str, Callable[[], object]] = {
        "a job cannot write to its own folder": lambda: (folder / "written").write_bytes(b"x"),
        "a job cannot start Python": lambda: subprocess.run([sys.executable, "-c", "import json"], check=True),
    }
    problems += [problem for problem, attempt in allowed.items() if not _works(attempt)]
    if config.uses_gpu:
        problems += _try_cuda()
    _tell(problems)


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _try_cuda() -> list[str]:
    try:
        failure = ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError as missing:
        return [f"a job cannot load CUDA ({missing})"]
    return [f"CUDA does not start in a job (error {failure})"] if failure else []


if __name__ == "__main__":
    main()

"""The worker that `fusionscope serve` starts on this machine, with its socket in a private folder.

It is a program of its own, started again when it ends. It ends with this process, however this one ends: it watches the
pipe that is its standard input, whose other end is held here, and everything below it ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import structlog

from server.own_folders import OwnFolder
from server.passed_on import passed_on
from server.settings import ENVIRONMENT_PREFIX
from server.supervised import Supervised

log = structlog.get_logger(__name__)

PROGRAM = (sys.executable, "-P", "-m", "server.worker")
_END_SECONDS = 10.0


class LocalWorker:
    """One worker program and its successors: `command`, which is told where to listen and to end with its standard
    input. `settings` are those of the worker, by their names."""

    def __init__(self, settings: Mapping[str, object], command: tuple[str, ...] = PROGRAM) -> None:
        self._folder = OwnFolder("fusionscope-socket-")
        self.socket = self._folder.path / "worker.sock"
        self._settings = settings
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self.problem: str | None = None
        """Why it does not run, as a clause; None while it does."""

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self, tasks: Supervised) -> None:
        tasks.forever("worker program", self._run_once, expected=(WorkerEnded,))

    async def stop(self) -> None:
        """Ends the worker and everything below it. The supervised tasks must have stopped."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_END_SECONDS):
                        await process.wait()
                    break
        self._folder.remove()

    async def _run_once(self) -> None:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            *("--socket", str(self.socket), "--end-with-stdin"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder.path,
            env=self._environment(),
            start_new_session=True,
        )
        assert process.stderr is not None
        self.problem = None
        last = await _log_lines(process.stderr)
        code = await process.wait()
        self.problem = f"the worker program ended with code {code}" + (f": {last}" if last else "")
        raise WorkerEnded(self.problem)

    def _environment(self) -> dict[str, str]:
        settings = {f"{ENVIRONMENT_PREFIX}{name.upper()}": str(value) for name, value in self._settings.items()}
        return {**passed_on("LANG"), **settings, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


class WorkerEnded(Exception):
    """The worker program has ended; the message says how."""


async def _log_lines(stream: asyncio.StreamReader) -> str:
    """Passes on what the worker says to our log, until it has ended; the last line of it."""
    last = ""
    while chunk := await stream.read(8192):
        text = chunk.decode(errors="replace")
        sys.stderr.write(text)
        sys.stderr.flush()
        last = next((line for line in reversed(text.splitlines()) if line.strip()), last)
    return last[:300]

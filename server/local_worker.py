"""The worker that `fusionscope serve` starts on this machine, with its socket in a private folder.

It is a program of its own, started again when it ends. It ends with this process, however this one ends: it watches the
pipe that is its standard input, whose other end is held here, and everything below it ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import structlog

from server.children import end_of, said_by
from server.own_folders import OwnFolder
from server.passed_on import passed_on
from server.settings import ENVIRONMENT_PREFIX, Settings, WorkerSettings
from server.supervised import Supervised

log = structlog.get_logger(__name__)

PROGRAM = (sys.executable, "-P", "-m", "server.worker")
_END_SECONDS = 10.0
_LOOK_SECONDS = 1.0


class LocalWorker:
    """One worker program and its successors: `command`, which is told where to listen, to end with its standard input,
    and of `settings` what is a worker's."""

    def __init__(self, settings: Settings, command: tuple[str, ...] = PROGRAM) -> None:
        self._folder = OwnFolder("fusionscope-socket-")
        self.socket = self._folder.path / "worker.sock"
        self._settings = worker_settings(settings)
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._is_begun = False
        self._reading: asyncio.Task[str] | None = None
        self.problem: str | None = None
        """Why it does not run, as a clause; None while it does."""

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def begin(self) -> None:
        """Starts the program, before there is a loop that can look after it. Raises `OSError`."""
        self._folder.restore()
        self._process = subprocess.Popen(
            (*self._command, "--socket", str(self.socket), "--end-with-stdin"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self._folder.path,
            env=self._environment(),
            start_new_session=True,
        )
        self._is_begun = True

    def start(self, tasks: Supervised) -> None:
        tasks.forever("worker program", self._run_once, expected=(WorkerEnded,))

    async def stop(self) -> None:
        """Ends the worker and everything below it. The supervised tasks must have stopped."""
        if self._process is not None:
            await self._end(self._process)
            self._process = None
        if self._reading is not None:
            await self._reading
        self._folder.remove()

    async def _run_once(self) -> None:
        if not self._is_begun:
            self.begin()
        self._is_begun = False
        process = self._process
        assert process is not None
        self.problem = None
        self._reading = asyncio.create_task(_pass_on(process))
        looking = asyncio.create_task(self._look_after_socket(process))
        try:
            last = await asyncio.shield(self._reading)
            code = await end_of(process)
        finally:
            looking.cancel()
        self.problem = self.problem or f"the worker program ended with code {code}" + (f": {last}" if last else "")
        raise WorkerEnded(self.problem)

    async def _look_after_socket(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a worker whose socket was deleted, by what clears folders of temporary files say: nobody could connect
        to it once the connection that there is has ended, or would find what another user has put in its place."""
        while self._folder.is_whole and not self.socket.exists():
            await asyncio.sleep(_LOOK_SECONDS)
        while self._folder.is_whole and self.socket.exists():
            await asyncio.sleep(_LOOK_SECONDS)
        if process.poll() is None:
            self.problem = "its socket was deleted, and it starts again"
            await self._end(process)

    async def _end(self, process: subprocess.Popen[bytes]) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await end_of(process)
                break

    def _environment(self) -> dict[str, str]:
        settings = {f"{ENVIRONMENT_PREFIX}{name.upper()}": str(value) for name, value in self._settings.items()}
        return {**passed_on("LANG"), **settings, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


class WorkerEnded(Exception):
    """The worker program has ended; the message says how."""


async def _pass_on(process: subprocess.Popen[bytes]) -> str:
    """Passes on what the worker says to our log, until it has ended; the last line of it."""
    last = ""
    async for text in said_by(process):
        sys.stderr.write(text)
        sys.stderr.flush()
        last = next((line for line in reversed(text.splitlines()) if line.strip()), last)
    return last[:300]


def worker_settings(settings: Settings) -> dict[str, object]:
    """What a worker that we start is told: its own settings, and nothing of web's."""
    return {name: value for name in WorkerSettings.model_fields if (value := getattr(settings, name)) not in (None, ())}

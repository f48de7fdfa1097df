"""The service's side of a worker: starts it, keeps it alive, gives it one job at a time, reads what it says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import structlog

from compiler.options import Options
from server.sandbox.confine import GIB, MIB, Limits
from server.settings import Settings
from server.worker.messages import (
    Cancel,
    Ended,
    Failed,
    FromWorker,
    Hello,
    Log,
    Message,
    ReportAhead,
    Run,
    WorkerConfig,
)

log = structlog.get_logger(__name__)

GRACE_SECONDS = 15.0
"""How much longer than the job's own limit we wait for its end before the worker itself counts as stuck."""
_LONGEST_PAUSE_SECONDS = 30.0
_FOLDER_PREFIX = "fusionscope-worker-"
_PASSED_ON = (
    "PATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CC",
    "CXX",
)
"""All that a worker sees of the service's environment: where compilers and GPU are, and no secret."""


class WorkerUnavailable(Exception):
    """No worker can take jobs; the message says why."""


def worker_config(settings: Settings, folder: Path) -> WorkerConfig:
    """What a worker is told at its start, from the service's settings."""
    cpu_limits = Limits(
        cpu_seconds=int(2 * settings.wall_seconds) + 1,
        memory_bytes=int(settings.memory_gib * GIB),
        processes=settings.processes,
        open_files=settings.open_files,
        file_bytes=settings.file_mib * MIB,
    )
    return WorkerConfig(
        folder=str(folder),
        cpu_limits=cpu_limits,
        gpu_limits=cpu_limits.model_copy(update={"memory_bytes": int(settings.gpu_memory_gib * GIB)}),
        output_bytes=settings.output_kib * 1024,
        report_bytes=settings.report_mib * MIB,
        threads=settings.threads or len(os.sched_getaffinity(0)),
    )


class WorkerProcess:
    """One worker and its successors: when it dies it is started again, sooner at first and later after each failure."""

    def __init__(self, settings: Settings, **overrides: object) -> None:
        # Jobs run as another user where we are root: they must be able to pass through this folder, not to list it.
        _remove_leftovers()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
        self._folder.chmod(0o711)
        self._config = worker_config(settings, self._folder).model_copy(update=overrides)
        self._process: asyncio.subprocess.Process | None = None
        self._inbox: asyncio.Queue[tuple[Message, bytes] | None] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._cancelled: set[str] = set()
        self.hello: Hello | None = None
        self.problem: str | None = None
        self.restarts = 0

    def start(self) -> None:
        """Starts the first worker and returns at once; `ready` waits for it."""
        self._task = asyncio.create_task(self._keep_alive(), name="worker")

    async def ready(self, timeout_seconds: float = 60.0) -> Hello:
        """Waits until the worker is warm. Raises `WorkerUnavailable` when it cannot start."""
        try:
            async with asyncio.timeout(timeout_seconds), self._changed:
                await self._changed.wait_for(lambda: self.hello is not None or self.problem is not None)
        except TimeoutError:
            raise WorkerUnavailable("The worker is still importing its libraries.") from None
        if self.hello is None:
            raise WorkerUnavailable(f"The worker does not start: {self.problem}")
        return self.hello

    async def run(
        self, job: str, source: str, options: Options, wall_seconds: float
    ) -> AsyncIterator[bytes | Log | Ended]:
        """Runs one job: yields raw reports and log lines as they come, and how the job ended last."""
        await self.ready()
        while not self._inbox.empty():
            self._inbox.get_nowait()
        await self._send(Run(job=job, source=source, options=options, wall_seconds=wall_seconds))
        if job in self._cancelled:
            # It was cancelled before the worker had heard of it, and the worker ignores what it has not heard of.
            await self._send(Cancel(job=job))
            self._cancelled.discard(job)
        try:
            async with asyncio.timeout(wall_seconds + GRACE_SECONDS):
                while (item := await self._inbox.get()) is not None:
                    message, payload = item
                    if isinstance(message, ReportAhead) and message.job == job:
                        yield payload
                    elif isinstance(message, Log | Ended) and message.job == job:
                        yield message
                        if isinstance(message, Ended):
                            return
        except TimeoutError:
            log.error("worker_stuck", job=job)
            await self._end_process()
        yield Ended(job=job, ending="worker_lost")

    def forget(self, job: str) -> None:
        """The job is over: a wish to cancel it must not reach a later run of the same exploration."""
        self._cancelled.discard(job)

    async def cancel(self, job: str) -> None:
        """Asks for the end of a job that is running or about to; `run` then yields how it ended."""
        self._cancelled.add(job)
        await self._send(Cancel(job=job))

    async def stop(self) -> None:
        """Ends the worker and everything below it."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._end_process()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _send(self, message: Run | Cancel) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(message.model_dump_json().encode() + b"\n")
            await self._process.stdin.drain()

    async def _keep_alive(self) -> None:
        failures = 0
        while True:
            try:
                was_warm = await self._serve_once()
            except OSError as failure:
                was_warm = False
                await self._set_state(None, f"{type(failure).__name__}: {failure}")
            await self._end_process()
            self._inbox.put_nowait(None)
            failures = 0 if was_warm else failures + 1
            self.restarts += 1
            pause = min(_LONGEST_PAUSE_SECONDS, 0.5 * 2**failures) if failures else 0.0
            log.warning("worker_ended", was_warm=was_warm, problem=self.problem, again_in_seconds=pause)
            await asyncio.sleep(pause)

    async def _serve_once(self) -> bool:
        """Starts a worker and reads from it until it ends. True when it had become warm."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "server.worker.keeper"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder,
            env=self._environment(),
            start_new_session=True,
        )
        self._process = process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        errors = asyncio.create_task(_log_lines(process.stderr))
        try:
            process.stdin.write(self._config.model_dump_json().encode() + b"\n")
            await self._read_messages(process.stdout)
        finally:
            errors.cancel()
            was_warm = self.hello is not None
            if self.problem is None:
                await self._set_state(None, None)
        if not was_warm and self.problem is None:
            await self._set_state(None, "its process ended while it was starting; the log of the service says more")
        return was_warm

    async def _read_messages(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            message = FromWorker.validate_json(line)
            if isinstance(message, Hello):
                await self._set_state(message, None)
                log.info("worker_ready", device=message.identity.device_name, isolation=message.isolation)
            elif isinstance(message, Failed):
                await self._set_state(None, message.message)
            else:
                payload = b""
                if isinstance(message, ReportAhead):
                    payload = await stream.readexactly(message.bytes)
                self._inbox.put_nowait((message, payload))

    async def _set_state(self, hello: Hello | None, problem: str | None) -> None:
        async with self._changed:
            self.hello, self.problem = hello, problem
            self._changed.notify_all()

    async def _end_process(self) -> None:
        """Closing its stdin tells the keeper to end everything; signals are for a keeper that does not listen."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                async with asyncio.timeout(6.0):
                    await process.wait()
                return
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)
        await process.wait()

    def _environment(self) -> dict[str, str]:
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return passed_on | {
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PYTHONUNBUFFERED": "1",
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            # Believe /proc/cpuinfo about vector instructions: trying each with a compiler takes every job six seconds.
            "TORCHINDUCTOR_VEC_ISA_OK": "1",
        }


def _remove_leftovers() -> None:
    """Removes the folders of services that were killed before they could do so themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*-*"):
        process = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        if process.isdigit() and not Path("/proc", process).exists():
            shutil.rmtree(folder, ignore_errors=True)


async def _log_lines(stream: asyncio.StreamReader) -> None:
    while chunk := await stream.read(8192):
        log.warning("worker_says", text=chunk.decode(errors="replace"))

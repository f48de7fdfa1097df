"""A worker in a process of its own, and a web that speaks with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.options import Options
from server.sandbox.processes import descendants
from server.wire.messages import (
    NO_SLOT,
    Cancel,
    Changed,
    Ended,
    Hello,
    Limits,
    Log,
    Run,
    Started,
    State,
    Welcome,
    next_from_worker,
    send,
)
from server.worker.channel import Program
from tests.sandbox.harness import zygote_below

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
WAIT_SECONDS = 120.0
"""Far longer than anything here takes, also on a busy machine."""
TESTS = Path(__file__).parents[1]
PLAIN = Program(
    explore="tests.worker.programs:explore", imports=(), later=(), warm_source="verdict = 'warm'", readable=(TESTS,)
)

_ENTRY = (
    "import sys\n"
    "from server.settings import WorkerSettings\n"
    "from server.worker.channel import Program\n"
    "from server.worker.program import run\n"
    "raise SystemExit(run(WorkerSettings(), Program.model_validate_json(sys.argv[1]), ends_with_stdin=True))\n"
)


@contextmanager
def worker_process(program: Program = PLAIN, user: int | None = None, **settings: object) -> Iterator[WorkerProcess]:
    """The program worker, as another `user` where one is named; ended, with all below it, when the block ends."""
    with tempfile.TemporaryDirectory(prefix="worker-test-") as folder:
        Path(folder).chmod(0o711)  # jobs may have users of their own
        variables = {f"FUSIONSCOPE_{name.upper()}": str(value) for name, value in settings.items()}
        path = Path(folder, "worker.sock")
        command = [sys.executable, "-c", _ENTRY, program.model_dump_json()]
        if user is not None and user != os.geteuid():
            Path(folder, "mounts").mkdir()
            os.chown(folder, user, user)
            variables["WORKSPACE"] = f"{folder}/mounts"
            command = [sys.executable, str(TESTS / "sandbox" / "as_user.py"), str(user), *command]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={
                **os.environ,
                "TMPDIR": folder,
                "FUSIONSCOPE_SOCKET": str(path),
                "A_SECRET_OF_THE_WORKER": "1",
                **variables,
            },
            stdin=subprocess.PIPE,
        )
        assert process.stdin is not None
        try:
            yield WorkerProcess(process, path, Path(folder))
        finally:
            process.stdin.close()
            try:
                process.wait(WAIT_SECONDS)
            finally:
                process.kill()


@dataclass
class WorkerProcess:
    process: subprocess.Popen[bytes]
    socket: Path
    folder: Path

    @property
    def keeper(self) -> int:
        """The process above the zygote."""
        return children(self.process.pid)[0]

    @property
    def zygote(self) -> int:
        return zygote_below(self.keeper)

    def descendants(self) -> list[int]:
        return descendants(self.process.pid)

    @asynccontextmanager
    async def web(self, is_welcome: bool = True) -> AsyncIterator[Web]:
        """A connection, over when the block ends."""
        reader, writer = await self._connect()
        web = Web(reader, writer)
        listening = asyncio.create_task(web.listen())
        try:
            if is_welcome:
                await send(writer, Welcome(build="test"))
            yield web
        finally:
            listening.cancel()
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                try:
                    return await asyncio.open_unix_connection(self.socket)
                except OSError:
                    assert self.process.poll() is None, "the worker has ended"
                    await asyncio.sleep(0.02)


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@dataclass
class Done:
    """All that was said of one job."""

    started: Started | None = None
    payloads: list[bytes] = field(default_factory=list)
    output: str = ""
    ended: Ended | None = None

    def report(self) -> dict[str, Any]:
        """The parts that came, by their pointers, the last of each."""
        parts: dict[str, Any] = {}
        for payload in self.payloads:
            with contextlib.suppress(ValueError):  # the snippet's own
                parts |= json.loads(payload)
        return parts

    @property
    def verdict(self) -> str:
        return str(self.report()["/summary"]["verdict"])


class Web:
    """What a web hears from the worker, kept by job."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.hellos: list[Hello] = []
        self.states: list[State] = []
        self.jobs: dict[str, Done] = {}
        self.is_over = False
        self._changed = asyncio.Condition()
        self._number = 0

    async def listen(self) -> None:
        with contextlib.suppress(ConnectionError):
            while (found := await next_from_worker(self.reader, 64 * MIB)) is not None:
                async with self._changed:
                    self._take(*found)
                    self._changed.notify_all()
        async with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def _take(self, message: Any, payload: bytes) -> None:
        if isinstance(message, Hello):
            self.hellos.append(message)
        elif isinstance(message, State):
            self.states.append(message)
        else:
            job = self.jobs[message.job]
            assert job.ended is None, f"{message.kind} after the end"
            if isinstance(message, Started):
                job.started = message
            elif isinstance(message, Changed):
                job.payloads.append(payload)
            elif isinstance(message, Log):
                job.output += message.text
            else:
                job.ended = message

    async def until(self, is_so: Any) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(is_so)

    async def ready(self, restarts: int = 0) -> State:
        await self.until(lambda: self.states and self.states[-1].ready and self.states[-1].restarts >= restarts)
        return self.states[-1]

    async def begin(self, source: str, options: Options | None = None, **limits: Any) -> str:
        """Asks for a job, and gives its name."""
        self._number += 1
        name = f"job{id(self):x}.{self._number}"
        self.jobs[name] = Done()
        allowed = {"wall_seconds": 120, "output_bytes": MIB, "report_bytes": 32 * MIB} | limits
        await self.ready()
        await send(
            self.writer,
            Run(job=name, source=source, options=options or Options(), limits=Limits.model_validate(allowed)),
        )
        return name

    async def done(self, name: str) -> Done:
        job = self.jobs[name]
        await self.until(lambda: job.ended is not None or self.is_over)
        assert job.ended is not None, "the connection is over"
        return job

    async def run(self, source: str, options: Options | None = None, **limits: Any) -> Done:
        return await self.done(await self.begin(source, options, **limits))

    async def cancel(self, name: str) -> None:
        await send(self.writer, Cancel(job=name))

    async def until_slots_are_free(self) -> None:
        """Until nothing is left of jobs of other connections, which the worker ends when those are over. Then as many
        jobs run side by side as there are slots."""
        await self.ready()  # a connection may hear of no worker yet
        while True:
            jobs = [await self.begin("import time\ntime.sleep(600)") for _ in range(self.hellos[-1].slots)]
            await self.until(lambda: all(self.jobs[job].started or self.jobs[job].ended for job in jobs))  # noqa: B023
            was_refused = any(self.jobs[job].ended for job in jobs)
            for job in jobs:
                await self.cancel(job)
                await self.done(job)
            if not was_refused:
                return

    async def next_job_is_fine(self) -> None:
        """What is left of another connection's jobs may keep its slot for a moment, but not for ever."""
        async with asyncio.timeout(WAIT_SECONDS):
            while (done := await self.run("verdict = 'fine'")).ended is not None and done.ended.problem == NO_SLOT:
                await asyncio.sleep(0.02)
        assert done.ended is not None and done.ended.ending == "exited", done.ended
        assert done.verdict == "fine"


async def eventually(is_so: Any) -> bool:
    """Whether it comes to be so, within a time that only what never happens takes."""
    end = asyncio.get_running_loop().time() + WAIT_SECONDS
    while not is_so():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.02)
    return True

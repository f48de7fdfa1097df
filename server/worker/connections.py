"""The worker's side of one connection with web: it says who it is and how it does, and runs what it is asked to.

Nothing that comes over it can end the worker: what is no message closes that connection, and with it its jobs. A web
that does not read is let go after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import structlog

from server.wire.frames import FrameError
from server.wire.messages import (
    HEARTBEAT_SECONDS,
    Cancel,
    Ended,
    Hello,
    Message,
    Run,
    State,
    Welcome,
    next_for_worker,
    send,
)
from server.worker.changes import Changes

log = structlog.get_logger(__name__)

SEND_SECONDS = 60.0
"""How long web may take to read what it is sent; then the connection is closed."""
WELCOME_SECONDS = 30.0


class Jobs(Protocol):
    """What a connection asks of the worker."""

    def hello(self) -> Hello: ...

    def state(self, running: tuple[str, ...]) -> State: ...

    async def run(self, run: Run, link: Link) -> Ended:
        """Runs one job; its events go through `link.send`, and its end is returned."""
        ...


class Link:
    """One connection. `moved` tells of changes of the worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, jobs: Jobs, moved: Changes) -> None:
        self._reader = reader
        self._writer = writer
        self._jobs = jobs
        self._moved = moved
        self._running: dict[str, asyncio.Task[None]] = {}
        self._cancels: dict[str, Callable[[], None]] = {}
        self._cancelled: set[str] = set()

    async def serve(self) -> None:
        """Returns when the connection is over and none of its jobs is left."""
        beats = asyncio.create_task(self._tell_state())
        try:
            await self._listen()
        except (FrameError, ConnectionError, TimeoutError) as failure:
            log.warning("connection_closed", problem=str(failure) or type(failure).__name__)
        finally:
            beats.cancel()
            for cancel in list(self._cancels.values()):
                cancel()
            self._cancelled.update(self._running)
            self._writer.transport.abort()
            await asyncio.gather(beats, *self._running.values(), return_exceptions=True)

    async def send(self, message: Message, payload: bytes = b"") -> None:
        """Raises `ConnectionError` where web is gone or does not read."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await send(self._writer, message, payload)
        except TimeoutError:
            self._writer.transport.abort()
            raise ConnectionAbortedError("Web does not read what it is sent.") from None

    @contextlib.contextmanager
    def cancelling(self, job: str, cancel: Callable[[], None]) -> Iterator[None]:
        """Within, a cancel of that job calls `cancel`; at once where it has come already."""
        self._cancels[job] = cancel
        if job in self._cancelled:
            cancel()
        try:
            yield
        finally:
            self._cancels.pop(job, None)

    async def _listen(self) -> None:
        async with asyncio.timeout(WELCOME_SECONDS):
            first = await next_for_worker(self._reader)
        if first is None:
            return
        if not isinstance(first, Welcome):
            raise FrameError("The first message has to be a Welcome.")
        log.info("connected", build_of_web=first.build)
        while (message := await next_for_worker(self._reader)) is not None:
            if isinstance(message, Run):
                self._begin(message)
            elif isinstance(message, Cancel):
                self._cancel(message.job)

    def _begin(self, run: Run) -> None:
        if run.job in self._running:
            raise FrameError("A job of that name is running.")
        task = asyncio.create_task(self._run(run), name="job")
        self._running[run.job] = task
        self._moved.notify()

    def _cancel(self, job: str) -> None:
        if job in self._running:
            self._cancelled.add(job)
        if job in self._cancels:
            self._cancels[job]()

    async def _run(self, run: Run) -> None:
        try:
            ended = await self._jobs.run(run, self)
        except Exception as failure:  # noqa: BLE001 - web must hear of the end of each job
            log.exception("job_failed")
            ended = Ended(job=run.job, ending="worker_lost", problem=f"the worker failed: {type(failure).__name__}")
        try:
            with contextlib.suppress(ConnectionError):
                await self.send(ended)
        finally:
            self._running.pop(run.job, None)
            self._cancelled.discard(run.job)
            self._moved.notify()

    async def _tell_state(self) -> None:
        """Who the worker is and how it does, whenever that changes, and every few seconds besides."""
        hello, state = self._told_now()
        await self.send(hello)
        while True:
            await self.send(state)
            before = hello, state
            with contextlib.suppress(TimeoutError):
                await self._moved.wait_for(partial(self._differs, before), HEARTBEAT_SECONDS)
            hello, state = self._told_now()
            if hello != before[0]:
                await self.send(hello)

    def _told_now(self) -> tuple[Hello, State]:
        return self._jobs.hello(), self._jobs.state(tuple(self._running))

    def _differs(self, before: tuple[Hello, State]) -> bool:
        return self._told_now() != before

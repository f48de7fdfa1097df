"""Workers of this machine, each behind a Unix socket. One connection a worker, tried again for as long as web runs.

A worker is taken only where it is of this protocol and this build and has a profile that was declared: otherwise its
reports would be stored under ids that mean something else. What it is refused for stands in its `problem`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import time
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any

import structlog

from server.executors.protocol import Event, Handle, NoSlot, Spec, WorkerDevice
from server.wire.frames import FrameError
from server.wire.messages import (
    HEARTBEAT_SECONDS,
    PROTOCOL,
    Cancel,
    Ended,
    Hello,
    Run,
    State,
    Welcome,
    WorkerIdentity,
    next_from_worker,
    send,
)

log = structlog.get_logger(__name__)

SILENCE_SECONDS = 4 * HEARTBEAT_SECONDS
CANCEL_SECONDS = 30.0
"""A job that has not ended so long after it was to be cancelled is given up, and its worker's connection with it."""
_PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_EVENTS_HELD = 4
"""Events of one job that wait to be read; the worker waits where there are more."""


_PEER = struct.Struct("3i")
"""Process, user and group of who listens at a Unix socket."""


class _Refused(Exception):
    """The worker is not one that this web can use; the message says why, as a clause."""


class _LocalHandle:
    """One job at one worker."""

    def __init__(self, worker: _Worker, job: str) -> None:
        self._worker = worker
        self.job = job
        self.submitted_at = time.monotonic()
        self.cancelled_at: float | None = None
        self.queue: asyncio.Queue[Event] = asyncio.Queue(_EVENTS_HELD)
        self.lost = asyncio.Event()
        self.is_abandoned = False
        self.problem = ""

    async def events(self) -> AsyncGenerator[Event]:
        try:
            while True:
                event = await self._next()
                yield event
                if isinstance(event[0], Ended):
                    return
        finally:
            # Whoever reads no further must not hold up the other jobs of this worker.
            self.is_abandoned = True
            while not self.queue.empty():
                self.queue.get_nowait()

    async def _next(self) -> Event:
        if self.queue.empty() and not self.lost.is_set():
            waits = [asyncio.create_task(self.queue.get()), asyncio.create_task(self.lost.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                first = waits[0]
                if first.done():
                    return first.result()  # type: ignore[return-value]
            finally:
                for wait in waits:
                    wait.cancel()
        if not self.queue.empty():
            return self.queue.get_nowait()
        return Ended(job=self.job, ending="worker_lost", problem=self.problem), b""

    async def cancel(self) -> None:
        if self.cancelled_at is None and not self.lost.is_set():
            self.cancelled_at = time.monotonic()
            await self._worker.send(Cancel(job=self.job))

    def lose(self, problem: str) -> None:
        self.problem = problem
        self.lost.set()


class LocalExecutor:
    """The workers at `sockets`, of this `build` and of one of `profiles`. Those of `own` are of this program's user."""

    def __init__(
        self,
        sockets: Collection[Path],
        build: str,
        profiles: Collection[WorkerIdentity],
        most_payload_bytes: int,
        own: Collection[Path] = (),
    ) -> None:
        self._change = asyncio.Event()
        self._build = build
        self._profiles = tuple(profiles)
        self._most_payload_bytes = most_payload_bytes
        self._own = frozenset(own)
        self._workers = {str(path): self._worker(str(path), path) for path in sockets}

    def _worker(self, name: str, path: Path) -> _Worker:
        user = os.geteuid() if path in self._own else None
        return _Worker(self, name, path, self._build, self._profiles, self._most_payload_bytes, user)

    async def start(self) -> None:
        for worker in self._workers.values():
            worker.start()

    async def stop(self) -> None:
        await asyncio.gather(*(worker.stop() for worker in self._workers.values()))

    async def keep(self, sockets: Mapping[str, Path]) -> None:
        """From now on the workers are those at `sockets`, by their names. Others are let go, and their jobs are lost;
        new ones are connected to."""
        for name, worker in list(self._workers.items()):
            if sockets.get(name) != worker.path:
                del self._workers[name]
                await worker.leave("it no longer exists")
        for name, path in sockets.items():
            if name not in self._workers:
                self._workers[name] = self._worker(name, path)
                self._workers[name].start()
        self.notify()

    def devices(self) -> tuple[WorkerDevice, ...]:
        return tuple(worker.device() for worker in self._workers.values())

    def changed(self) -> Coroutine[Any, Any, None]:
        # What is waited for is settled now, not when the coroutine is first run: a task may run it much later.
        return _until(self._change)

    async def submit(self, spec: Spec) -> Handle:
        fitting = [worker for worker in self._workers.values() if worker.fits(spec.profile)]
        if not fitting:
            raise NoSlot(f"no worker with the device {spec.profile.device_name!r} is ready and has a free slot")
        return await max(fitting, key=lambda worker: worker.device().free).submit(spec)

    def notify(self) -> None:
        """To be called where `devices` says something new."""
        self._change.set()
        self._change = asyncio.Event()


async def _until(event: asyncio.Event) -> None:
    await event.wait()


class _Worker:
    """One socket, and the worker that is there or is waited for."""

    def __init__(
        self,
        executor: LocalExecutor,
        name: str,
        path: Path,
        build: str,
        profiles: tuple[WorkerIdentity, ...],
        most_payload_bytes: int,
        user: int | None,
    ) -> None:
        self.path = path
        self._user = user
        self._executor = executor
        self._name = name
        self._build = build
        self._profiles = profiles
        self._most_payload_bytes = most_payload_bytes
        self._handles: dict[str, _LocalHandle] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._hello: Hello | None = None
        self._state: State | None = None
        self._problem: str | None = "it has not been reached yet"
        self._losses = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name=f"worker at {self._name}")

    async def stop(self) -> None:
        for handle in list(self._handles.values()):
            with contextlib.suppress(ConnectionError):
                await handle.cancel()
        await self.leave("web stops")

    async def leave(self, problem: str) -> None:
        """Ends the connection; its jobs are lost for that reason."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for handle in self._handles.values():
            handle.lose(problem)
        self._handles.clear()

    def device(self) -> WorkerDevice:
        hello, state = self._hello, self._state
        is_ready = hello is not None and state is not None and state.ready
        slots = hello.slots if hello is not None else 0
        problem = self._problem if hello is None else None if is_ready else (state and state.problem) or "it starts"
        return WorkerDevice(
            name=self._name,
            profile=hello.profile if hello is not None else WorkerIdentity(),
            slots=slots,
            free=max(0, slots - len(self._handles)) if is_ready else 0,
            ready=is_ready,
            problem=problem,
            tier=hello.tier if hello is not None else None,
            isolation=hello.isolation if hello is not None else (),
            facts=hello.devices if hello is not None else (),
            restarts=self._losses + (state.restarts if state is not None else 0),
            gpu=state.gpu if state is not None else None,
        )

    def fits(self, profile: WorkerIdentity) -> bool:
        device = self.device()
        return device.free > 0 and device.profile == profile

    async def submit(self, spec: Spec) -> Handle:
        handle = self._handles[spec.job] = _LocalHandle(self, spec.job)
        await self.send(Run(job=spec.job, source=spec.source, options=spec.options, limits=spec.limits))
        # Linux often wakes who reads on the processor of who writes. What web does next can wait for the worker.
        os.sched_yield()
        return handle

    async def send(self, message: Run | Cancel | Welcome) -> None:
        """Where the worker is gone nothing is sent: its jobs are told so when the reader finds out."""
        if self._writer is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                await send(self._writer, message)

    async def _keep(self) -> None:
        failures = 0
        while True:
            was_welcome = False
            try:
                reader, self._writer = await asyncio.open_unix_connection(str(self.path))
                self._check_user(self._writer.get_extra_info("socket"))
                was_welcome = await self._greet(reader)
                await self._read(reader)
                problem = "it has closed the connection"
            except _Refused as refused:
                problem = str(refused)
            except (FrameError, TimeoutError) as failure:
                problem = f"it is not understood: {failure}" if str(failure) else "it does not say anything any more"
            except OSError as failure:
                problem = f"it cannot be reached at {self.path}: {failure.strerror or failure}"
            finally:
                await self._close()
            failures = 0 if was_welcome else failures + 1
            self._lose(problem, was_welcome)
            await asyncio.sleep(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)])

    async def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _lose(self, problem: str, was_welcome: bool) -> None:
        is_news = problem != self._problem or self._hello is not None
        if is_news:
            log.warning("worker_unavailable", worker=self._name, problem=problem)
        self._hello = self._state = None
        self._problem = problem
        self._losses += was_welcome
        for handle in self._handles.values():
            handle.lose(problem)
        self._handles.clear()
        if is_news:
            self._executor.notify()

    async def _greet(self, reader: asyncio.StreamReader) -> bool:
        async with asyncio.timeout(SILENCE_SECONDS):
            first = await next_from_worker(reader, self._most_payload_bytes)
        if first is None:
            raise _Refused("it has closed the connection before it said who it is")
        hello, _ = first
        if not isinstance(hello, Hello):
            raise _Refused(f"its first message is of the kind {hello.kind!r} and not 'hello'")
        self._check(hello)
        await self.send(Welcome(build=self._build))
        self._hello, self._problem = hello, None
        log.info("worker_connected", worker=self._name, device=hello.profile.device_name, tier=hello.tier)
        self._executor.notify()
        return True

    def _check_user(self, connected: socket.socket) -> None:
        """Where our own folder of temporary files was deleted, anybody may have put another one in its place."""
        _, user, _ = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if self._user not in (None, user):
            raise _Refused(f"another user's program listens there (user {user})")

    def _check(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            raise _Refused(
                f"it speaks version {hello.protocol} of the protocol and this web version {PROTOCOL}: install the same "
                "version of both"
            )
        if hello.build != self._build:
            raise _Refused(
                f"it is of the build {hello.build} and this web of {self._build}: install the same version of both"
            )
        if hello.profile not in self._profiles:
            raise _Refused(f"its profile is not among those declared: {_difference(hello.profile, self._profiles)}")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            async with asyncio.timeout(SILENCE_SECONDS):
                found = await next_from_worker(reader, self._most_payload_bytes)
            if found is None:
                return
            message, payload = found
            if isinstance(message, Hello):
                self._check(message)
                self._hello = message
                self._executor.notify()
            elif isinstance(message, State):
                self._take_state(message)
            elif (handle := self._handles.get(message.job)) is not None:
                await self._give(handle, message, payload)
            # What is late, of a job that was given up, is passed over.

    async def _give(self, handle: _LocalHandle, message: object, payload: bytes) -> None:
        assert not isinstance(message, Hello | State)
        if isinstance(message, Ended):
            self._handles.pop(handle.job, None)
            self._executor.notify()
        if not handle.is_abandoned:
            await handle.queue.put((message, payload))  # type: ignore[arg-type]

    def _take_state(self, state: State) -> None:
        is_news = self._state is None or (self._state.ready, self._state.problem) != (state.ready, state.problem)
        self._state = state
        now = time.monotonic()
        for name, handle in list(self._handles.items()):
            is_unknown = name not in state.running and now - handle.submitted_at > HEARTBEAT_SECONDS
            is_stuck = handle.cancelled_at is not None and now - handle.cancelled_at > CANCEL_SECONDS
            if is_unknown or is_stuck:
                handle.lose("its worker does not know it any more" if is_unknown else "it could not be ended")
                del self._handles[name]
                is_news = True
        if is_news:
            self._executor.notify()


def _difference(profile: WorkerIdentity, declared: tuple[WorkerIdentity, ...]) -> str:
    """What sets the profile apart from the declared one that is nearest to it."""
    said = profile.model_dump()

    def others(one: WorkerIdentity) -> list[str]:
        known = one.model_dump()
        return [f"{name} {said[name]!r} for {known[name]!r}" for name in said if said[name] != known[name]]

    nearest = min((others(one) for one in declared), key=lambda found: len(found))
    return "it has " + ", ".join(nearest)

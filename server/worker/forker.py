"""The worker's side of one zygote: it starts it, asks it for processes, and sees them end.

`Zygote` is one process that is exec'ed, never forked from here, so it has nothing of the worker's memory. `Process` is
one that it made: a spare, and later a job. Both end once; a new zygote is a new object (`supply.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from server.children import end_of, said_by
from server.sandbox import ControlGroup, ControlGroups, JobLimits, Watch
from server.wire.messages import Tier
from server.worker.channel import (
    Fork,
    Forked,
    FromZygote,
    Gone,
    Ready,
    Settled,
    ZygoteConfig,
    receive_packet,
    send_packet,
)
from server.worker.records import Request, request_bytes
from server.worker.zygote_start import Started

log = structlog.get_logger(__name__)

KILL_SECONDS = 15.0
"""How long a process may take to be gone once it was killed; then its zygote is given up, with all that it forked. A
hundred processes of a fork bomb took more than five seconds to end on a machine with twelve others to every core."""
_KILLS = 10
"""Times that it is killed in that time: a watch takes sharper means after a while."""
_TELLING_SECONDS = 0.5
"""How long a guard has to tell how a process ended, which it needs a millisecond for."""


class ZygoteLost(Exception):
    """The zygote is gone, or never came to be; the message says why, as a clause without a full stop."""


@dataclass(frozen=True)
class Exit:
    """How a process ended, as its guard saw it. None where nobody was left to see it."""

    exit_code: int | None = None
    signal: int | None = None
    processor_seconds: float | None = None
    failure: str | None = None
    """Why it never ran."""
    out_of_memory: bool = False
    """Whether the kernel ended it since its control group had no memory left."""

    def in_words(self, output: str) -> str:
        """Why it never ran, or how it ended and what it said last: for whoever looks for a defect."""
        if self.failure is not None:
            return self.failure
        code = self.exit_code if self.signal is None else -self.signal
        return f"it ended by {'what nobody saw' if code is None else _how(code)}; it said: {output}"


class Process:
    """One process that was forked, seen from outside."""

    def __init__(self, number: int, zygote: Zygote) -> None:
        self.number = number
        self.zygote = zygote
        self.reports = asyncio.StreamReader()
        self.output = asyncio.StreamReader()
        self.watch: Watch | None = None
        """Known once the zygote has forked it."""
        self.gone: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        """Done when nothing of the process is left."""
        self.group: ControlGroup | None = None
        self._guard: int | None = None
        self._over = asyncio.Event()
        self._transports: list[asyncio.BaseTransport] = []
        self._requests: asyncio.WriteTransport | None = None

    async def open(self) -> tuple[int, int, int]:
        """Makes the pipes; gives the ends that belong to the new process. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        ends: list[int] = []
        try:
            for reader in (self.reports, self.output):
                reading, writing = os.pipe()
                ends.append(writing)
                transport, _ = await loop.connect_read_pipe(_protocol_of(reader), os.fdopen(reading, "rb", 0))
                self._transports.append(transport)
            reading, writing = os.pipe()
            ends.append(reading)
            self._requests, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(writing, "wb", 0))
            self._transports.append(self._requests)
        except BaseException:
            for end in ends:
                os.close(end)
            raise
        return ends[0], ends[1], ends[2]

    def give(self, request: Request) -> None:
        """Its job. Does nothing where the process is gone."""
        self.tell(request_bytes(request))

    def tell(self, data: bytes) -> None:
        if self._requests is not None and not self._requests.is_closing():
            self._requests.write(data)

    async def end(self) -> Exit:
        """Ends it, where it is not over, and waits until nothing of it is left. Ends its zygote if it must."""
        if self.reports.at_eof():
            # It has ended by itself, as it seems. Its guard is about to tell how, if it is not killed before.
            await asyncio.wait({self.gone}, timeout=_TELLING_SECONDS)
        if not self.gone.done():
            for _ in range(_KILLS):
                if self.watch is not None:
                    self.watch.kill()
                await asyncio.wait({self.gone}, timeout=KILL_SECONDS / _KILLS)
                if self.gone.done():
                    break
            else:
                log.error("process_stuck", process=self.number)
                await self.zygote.end("a process of it could not be ended")
        return await asyncio.shield(self.gone)

    def close(self) -> None:
        """Lets go of the pipes. A process that waits for its job then ends by itself."""
        for transport in self._transports:
            transport.close()

    def take_guard(self, guard: int, tier: Tier, folder: Path) -> None:
        """The zygote has forked it; `guard` is a pidfd, which now belongs to this object."""
        self._guard = guard
        with contextlib.suppress(ProcessLookupError):  # it is over already
            self.watch = Watch(guard, tier, folder)
        asyncio.get_running_loop().add_reader(guard, self._see_end)

    async def over(self, seconds: float) -> bool:
        """Whether its guard ends within a time."""
        if self._guard is None:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        return self._over.is_set()

    def become_gone(self, found: Exit) -> None:
        if self.gone.done():
            return
        if self._guard is not None:
            asyncio.get_running_loop().remove_reader(self._guard)
            os.close(self._guard)
            self._guard = None
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        if self.group is not None:
            by_kernel = found.signal == signal.SIGKILL and self.group.ran_out_of_memory()
            found = replace(found, out_of_memory=by_kernel)
            self.group.remove()
        self.gone.set_result(found)

    def _see_end(self) -> None:
        assert self._guard is not None
        asyncio.get_running_loop().remove_reader(self._guard)
        self._over.set()
        # The zygote tells how it ended, unless it stands still.
        asyncio.get_running_loop().call_later(KILL_SECONDS, self._miss_zygote)

    def _miss_zygote(self) -> None:
        if not self.gone.done():
            log.error("zygote_stuck", process=self.number)
            self.zygote.kill("it does not tell that a process has ended")


class Zygote:
    """One zygote. `ready` is done when it can fork, `settled` is set when it has imported everything, and `lost` when
    it is gone."""

    def __init__(
        self, started: Started, config: ZygoteConfig, on_settled: Callable[[], None], groups: ControlGroups | None
    ) -> None:
        """Tells the one that was started what it is to be; it imports for seconds."""
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Ready] = loop.create_future()
        self.settled = asyncio.Event()
        self.lost = asyncio.Event()
        self.problem: str | None = None
        self._process, self._channel = started.process, started.channel
        self._on_settled = on_settled
        self._groups = groups
        self._processes: dict[int, Process] = {}
        self._tier: Tier = config.sandbox.tier
        self._is_killed = False
        self._number = 0
        self._tasks = [asyncio.create_task(_log_lines(self._process)), asyncio.create_task(self._watch())]
        with contextlib.suppress(OSError):  # it has ended, which is seen soon
            send_packet(self._channel, config)
        loop.add_reader(self._channel, self._receive)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def fork(self, limits: JobLimits, request: Request | None = None) -> Process:
        """A new process: a spare, which begins to warm up, or one that finds a request.

        Raises `ZygoteLost` and `OSError`.
        """
        self._number += 1
        made = Process(self._number, self)
        ends: tuple[int, ...] = ()
        try:
            ends = await made.open()
            if self._groups is not None:
                made.group = self._groups.make(limits)
                ends = (*ends, made.group.open_processes())
            if self.lost.is_set():
                raise ZygoteLost(self.problem or "it is gone")
            self._processes[made.number] = made
            if request is not None:
                made.give(request)
            await self._send(Fork(number=made.number, limits=limits), ends)
        except BaseException:
            self._processes.pop(made.number, None)
            made.close()
            if made.group is not None:
                made.group.remove()
            raise
        finally:
            for end in ends:
                os.close(end)
        return made

    def kill(self, problem: str) -> None:
        """Begins to end it, and all that it forked: its keeper does that."""
        if self.problem is None:
            self.problem = problem
        if not self._is_killed:
            self._is_killed = True
            self._tasks.append(asyncio.create_task(self._kill()))

    async def end(self, problem: str) -> None:
        """Ends it, and waits until it and all that it forked is gone."""
        self.kill(problem)
        await self.lost.wait()

    async def _kill(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2 * KILL_SECONDS):
                    await self.lost.wait()
                    return

    async def _send(self, message: Fork, descriptors: tuple[int, ...]) -> None:
        """Waits while the zygote is busy: it may not have read what was sent before."""
        for _ in range(200):
            try:
                send_packet(self._channel, message, descriptors)
                return
            except BlockingIOError:
                await asyncio.sleep(0.02)
            except OSError as failure:
                raise ZygoteLost(f"it does not answer ({failure.strerror})") from None
        raise ZygoteLost("it does not answer")

    def _receive(self) -> None:
        """Called when there is something to read."""
        if not self._take_packet():
            asyncio.get_running_loop().remove_reader(self._channel)
            self.kill("it has closed its socket")  # it is on its way out; nothing can be asked of it

    def _take_packet(self) -> bool:
        """Reads once. False when there will be nothing any more."""
        try:
            received = receive_packet(self._channel)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        if received is None:
            return False
        data, descriptors = received
        message = FromZygote.validate_json(data)
        if isinstance(message, Forked):
            self._take_forked(message, *descriptors)
            return True
        for descriptor in descriptors:
            os.close(descriptor)
        if isinstance(message, Gone):
            self._take_gone(message)
        elif isinstance(message, Ready):
            if not self.ready.done():
                self.ready.set_result(message)
        elif isinstance(message, Settled):
            self.settled.set()
            self._on_settled()
        elif message.number is None:
            self.problem = message.message
        elif (process := self._processes.pop(message.number, None)) is not None:
            process.become_gone(Exit(failure=message.message))
        return True

    def _take_forked(self, message: Forked, guard: int) -> None:
        process = self._processes.get(message.number)
        if process is None:
            os.close(guard)
        else:
            process.take_guard(guard, self._tier, message.folder)

    def _take_gone(self, message: Gone) -> None:
        process = self._processes.pop(message.number, None)
        if process is not None:
            process.become_gone(
                Exit(message.exit_code, message.signal, message.processor_seconds, failure=message.failure)
            )

    async def _watch(self) -> None:
        """Sees the zygote's end, and then that of all that it forked, which ends with it."""
        code = await end_of(self._process)
        asyncio.get_running_loop().remove_reader(self._channel)
        while select.select([self._channel], [], [], 0)[0] and self._take_packet():  # what it said last
            continue
        self._channel.close()
        if self.problem is None:
            self.problem = f"its process ended ({_how(code)})"
        left = list(self._processes.values())
        if not all(await asyncio.gather(*(process.over(2 * KILL_SECONDS) for process in left))):
            log.error("process_left", hint="A process has outlived its zygote; restart this machine or container.")
        self._processes.clear()
        for process in left:
            process.become_gone(Exit())
        if not self.ready.done():
            self.ready.set_exception(ZygoteLost(self.problem))
            self.ready.exception()  # whoever does not wait for it has not missed it
        self.lost.set()


def _protocol_of(reader: asyncio.StreamReader) -> Callable[[], asyncio.StreamReaderProtocol]:
    return lambda: asyncio.StreamReaderProtocol(reader)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


async def _log_lines(process: subprocess.Popen[bytes]) -> None:
    async for text in said_by(process):
        log.warning("zygote_says", text=text)

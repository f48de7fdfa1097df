"""Watching one job from outside: its time, its output, its reports, its memory, and its end.

What the job writes is relayed in order and counted, until it ends or oversteps a limit. Whatever happens first is its
ending. Then all of it is ended, what it had written before is still relayed, and `Ended` says what was seen.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from server.sandbox import Watch
from server.wire.messages import Changed, Ended, Ending, GpuWhileTimed, Log, Message, Run, Started, Tier
from server.worker import records
from server.worker.config import Allowance
from server.worker.forker import Exit, Process
from server.worker.gpu import Gpu
from server.worker.lease import TimingLease
from server.worker.records import Begun, RecordRefused

log = structlog.get_logger(__name__)

WATCH_SECONDS = 0.05
BEGIN_SECONDS = 60.0
"""How long a process may take until its snippet begins; it has run nothing but our own code until then."""
DRAIN_SECONDS = 60.0
"""How long what a job wrote before its end may take to be relayed."""
MOST_RECORDS = 3000
"""Far more than there are stages and times to take: only a snippet that writes to the pipe itself sends so many."""
LOG_BYTES = 65536
"""Raw output that is passed on while the job runs; more is counted but not shown."""
LAST_OUTPUT_BYTES = 8192
_CHUNK = 65536

Send = Callable[[Message, bytes], Awaitable[None]]


@dataclass(frozen=True)
class Place:
    """Where jobs run, for `Ended`."""

    tier: Tier
    isolation: tuple[str, ...]
    device: str
    device_name: str


class NeverBegun(Exception):
    """The process ended before its snippet began; the message has its last words. Another one may try."""


class RunningJob:
    """One attempt in one process. `send` relays to web and raises `ConnectionError` where that is gone."""

    def __init__(
        self,
        run: Run,
        process: Process,
        allowance: Allowance,
        lease: TimingLease,
        send: Send,
        gpu: Gpu | None = None,
    ) -> None:
        self._job = run.job
        self._process = process
        self._allowance = allowance
        self._send = send
        self._gpu = gpu
        self._gpu_while_timed: GpuWhileTimed | None = None
        self._lease = lease.holder(lambda: process.tell(records.GRANTED))
        self._over: asyncio.Future[tuple[Ending, str | None]] = asyncio.get_running_loop().create_future()
        self._begun_at: float | None = None
        self._made_at = time.monotonic()
        self._begun = Begun(processor_seconds=0.0)
        self._records = self._report_bytes = self._output_bytes = self._peak_bytes = 0
        self._last_output = b""

    def end(self, ending: Ending, problem: str | None = None) -> None:
        """Ends the job for that reason, unless it is over already."""
        if not self._over.done():
            self._over.set_result((ending, problem))

    async def watch(self, place: Place) -> Ended:
        """Returns when nothing of the job is left.

        Raises `NeverBegun` where its process ended before the snippet began.
        """
        readers = [asyncio.create_task(self._relay_reports()), asyncio.create_task(self._relay_output())]
        watcher = asyncio.create_task(self._watch_limits())
        for task in (*readers, watcher):
            task.add_done_callback(self._end_if_failed)
        try:
            first: set[asyncio.Future[Any]] = {self._process.gone, self._over}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            watcher.cancel()  # its time is over too: to relay what it wrote may take longer
            ran_seconds, waited = time.monotonic(), self._lease.waited_seconds
            found = await self._process.end()
            await self._lease.close()
            await asyncio.wait(readers, timeout=self._drain_seconds())
        finally:
            for task in (*readers, watcher):
                task.cancel()
            await asyncio.gather(*readers, watcher, return_exceptions=True)
            await self._lease.close()
            self._process.close()
        if not self._over.done() and self._process.zygote.lost.is_set() and found == Exit():
            self.end("worker_lost", f"what runs snippets ended: {self._process.zygote.problem}")
        if not self._over.done() and self._begun_at is None:
            raise NeverBegun(found.in_words(self._last_words()))
        if found.exit_code is None and found.signal is None:
            # Its guard has always seen how it ended, unless it was killed itself: that is no doing of the snippet's.
            self.end("worker_lost", "the process that watches over it was killed")
        if found.out_of_memory:
            self.end("memory_limit")
        self.end("exited")
        # Of a job that is cancelled as it begins, the beginning is read after the end.
        wall = 0.0 if self._begun_at is None else max(0.0, ran_seconds - self._begun_at)
        return self._ended(found, place, wall, waited)

    def _drain_seconds(self) -> float:
        """What was written before the end is still in the pipes, and counts where the job was not ended for writing."""
        ending = self._over.result()[0] if self._over.done() else "exited"
        return 0.0 if ending in ("output_limit", "report_limit", "cancelled", "worker_lost") else DRAIN_SECONDS

    def _ended(self, found: Exit, place: Place, wall_seconds: float, waited_seconds: float) -> Ended:
        ending, problem = self._over.result()
        used = found.processor_seconds
        return Ended(
            job=self._job,
            ending=ending,
            exit_code=found.exit_code,
            signal=found.signal,
            wall_seconds=wall_seconds,
            waited_seconds=waited_seconds,
            processor_seconds=None if used is None else max(0.0, used - self._begun.processor_seconds),
            peak_memory_bytes=self._peak_bytes or None,
            gpu_while_timed=self._gpu_while_timed,
            tier=place.tier,
            isolation=place.isolation,
            device=place.device,
            device_name=place.device_name,
            output_bytes=self._output_bytes,
            report_bytes=self._report_bytes,
            last_output=self._last_words(),
            problem=problem,
        )

    def _last_words(self) -> str:
        return self._last_output.decode("utf-8", errors="replace")

    def _end_if_failed(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (failure := task.exception()) is None:
            return
        if isinstance(failure, ConnectionError):
            self.end("cancelled")
        elif isinstance(failure, RecordRefused):
            self.end("report_limit")
        else:
            log.error("watching_failed", exc_info=failure)
            self.end("worker_lost", f"the worker failed: {type(failure).__name__}")

    async def _relay_reports(self) -> None:
        """Raises `RecordRefused` where the job oversteps what it may write."""
        most = self._allowance.report_bytes
        while (record := await records.read_record(self._process.reports, most - self._report_bytes)) is not None:
            kind, content = record
            if self._begun_at is None:
                await self._take_beginning(kind, content)
                continue
            self._report_bytes += records.record_bytes(content)
            if self._report_bytes > most:
                raise RecordRefused("All reports together are too large.")
            await self._take(kind, content)

    async def _take_beginning(self, kind: bytes, content: bytes) -> None:
        """What our own code says before the snippet runs."""
        if kind != records.BEGUN:
            return
        self._begun = Begun.model_validate_json(content)
        self._begun_at = time.monotonic()
        await self._send(Started(job=self._job, wall_seconds=self._allowance.wall_seconds), b"")

    async def _take(self, kind: bytes, content: bytes) -> None:
        self._records += 1
        if self._records > MOST_RECORDS:
            raise RecordRefused("So many records come of no exploration.")
        if kind == records.REPORT:
            await self._send(Changed(job=self._job), content)
        elif kind == records.WANTS_LEASE:
            self._lease.ask()
        elif kind == records.RETURNS_LEASE:
            self._lease.give_back()

    async def _relay_output(self) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while chunk := await self._process.output.read(_CHUNK):
            self._last_output = (self._last_output + chunk)[-LAST_OUTPUT_BYTES:]
            self._output_bytes += len(chunk)
            if self._output_bytes > self._allowance.output_bytes:
                self.end("output_limit")
                return
            if self._output_bytes <= LOG_BYTES:
                await self._send(Log(job=self._job, text=decode(chunk)), b"")

    async def _watch_limits(self) -> None:
        while not self._over.done():
            self._end_if_late()
            if self._gpu is not None and self._lease.holds:
                self._gpu_while_timed = self._gpu.look(self._gpu_while_timed)
            watch = self._process.watch
            if watch is not None and (over := self._overstepped(watch)) is not None:
                self.end(over)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._over), WATCH_SECONDS)

    def _end_if_late(self) -> None:
        now = time.monotonic()
        if self._begun_at is None:
            if now > self._made_at + BEGIN_SECONDS:
                self.end("worker_lost", f"the snippet had not begun after {BEGIN_SECONDS:g} seconds")
        elif now > self._begun_at + self._allowance.wall_seconds + self._lease.waited_seconds:
            self.end("time_limit")

    def _overstepped(self, watch: Watch) -> Ending | None:
        # What is expensive to ask would show in the times that the job takes.
        if self._begun_at is not None and not self._lease.holds:
            self._peak_bytes = max(self._peak_bytes, watch.proportional_usage().memory_bytes)
        return watch.over(self._allowance.limits)

"""The supply of processes: it keeps a zygote alive and spares warm, and hands out what a job runs in.

A spare is made when it disturbs nobody: on a CPU one at a time while no job runs and none has ended just now, since it
would take a core from what is timed, and the next job of several may be on its way; and always under the timing lease
there. On a GPU several warm up beside each other. A spare that is not warm yet when a job comes is given that job: it
stops warming up after the step that it is at. Where there is none, a process is forked that does its first steps within
the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from server.sandbox import ControlGroups, JobLimits
from server.wire.messages import DeviceFacts
from server.worker import records, zygote_start
from server.worker.changes import Changes
from server.worker.channel import ZygoteConfig
from server.worker.forker import Process, Zygote, ZygoteLost
from server.worker.lease import TimingLease
from server.worker.records import Request, Warm
from server.worker.zygote_start import Started

log = structlog.get_logger(__name__)

IMPORT_SECONDS = 180.0
"""How long a zygote may import; a cold disk takes most of it."""
WARM_SECONDS = 120.0
"""How long a spare may warm up."""
QUIET_SECONDS = 0.5
"""How long no job must have run on a CPU before a spare is made: several times what web needs to send the next one."""


@dataclass(eq=False)
class _Warming:
    """A spare under way. A job that claims it does so before it is warm, and takes it when that is over."""

    process: Process
    is_claimed: bool = False
    is_warm: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Supply:
    """`changed` is called whenever `ready`, `problem`, `restarts` or `devices` may be others. `first` is a zygote that
    was started beforehand."""

    def __init__(
        self,
        config: ZygoteConfig,
        limits: JobLimits,
        spares: int,
        warms_beside_jobs: bool,
        lease: TimingLease,
        changed: Callable[[], None],
        groups: ControlGroups | None,
        first: Started | None = None,
    ) -> None:
        self.problem: str | None = "it is starting"
        self.restarts = 0
        self.devices: tuple[DeviceFacts, ...] = ()
        self._config = config
        self._limits = limits
        self._wanted = spares
        self._warms_beside_jobs = warms_beside_jobs
        self._lease = lease
        self._changed = changed
        self._groups = groups
        self._first = first
        self._zygote: Zygote | None = None
        self._warm: list[Process] = []
        self._warming: list[_Warming] = []
        self._being_made = 0
        self._in_use = 0
        self._quiet_from = 0.0
        self._moved = Changes()

    @property
    def ready(self) -> bool:
        return self._zygote is not None

    async def keep_zygote(self) -> None:
        """Starts a zygote, and returns when one that was ready is gone. Raises `ZygoteLost` for one that never was."""
        try:
            started, self._first = self._first or zygote_start.start(), None
            zygote = Zygote(started, self._config, self._moved.notify, self._groups)
        except OSError as failure:
            self._become(None, f"what runs snippets cannot be started: {failure.strerror}")
            raise
        try:
            async with asyncio.timeout(IMPORT_SECONDS):
                self.devices = (await zygote.ready).devices
            self._become(zygote, None)
            await zygote.lost.wait()
            log.warning("zygote_ended", problem=zygote.problem)
        except TimeoutError:
            await zygote.end(f"it had not imported everything after {IMPORT_SECONDS:g} seconds")
            raise ZygoteLost(zygote.problem) from None
        finally:
            await asyncio.shield(zygote.end("the worker ends"))
            self.restarts += 1
            self._become(None, f"what runs snippets starts again: {zygote.problem}")

    async def make_spare(self) -> None:
        """Waits until a spare is wanted and makes it. Raises what kept it from being made."""
        await self._moved.wait_for(self._wants_spare)
        quiet = contextlib.nullcontext() if self._warms_beside_jobs else self._lease.held()
        self._being_made += 1
        try:
            async with quiet:
                if self._zygote is not None:
                    await self._warm_one(self._zygote)
        finally:
            self._being_made -= 1

    async def _warm_one(self, zygote: Zygote) -> None:
        warming = _Warming(await zygote.fork(self._limits))
        self._warming.append(warming)
        forked = time.monotonic()
        try:
            took = await self._until_warm(warming.process)
            warming.is_warm = True
            log.info("spare_warm", seconds=round(time.monotonic() - forked, 3), steps=took, taken=warming.is_claimed)
            if not warming.is_claimed:
                self._warm.append(warming.process)
                warming.process.gone.add_done_callback(lambda _: self._moved.notify())
        finally:
            self._warming.remove(warming)
            warming.over.set()

    async def take(self, request: Request, in_spare: bool = True) -> Process:
        """A process that was given `request`, a spare where there is one and `in_spare` allows it; its end is told to
        `give_back`. Raises `ZygoteLost` and `OSError`."""
        self._in_use += 1
        try:
            if in_spare and (spare := await self._take_spare(request)) is not None:
                return spare
            if self._zygote is None:
                raise ZygoteLost(self.problem or "it is starting")
            return await self._zygote.fork(self._limits, request)
        except BaseException:
            self.give_back()
            raise

    async def _take_spare(self, request: Request) -> Process | None:
        if self._usable():
            spare = self._warm.pop(0)
            spare.give(request)
            return spare
        free = (warming for warming in self._warming if not warming.is_claimed)
        return await self._claim(first, request) if (first := next(free, None)) is not None else None

    def give_back(self) -> None:
        """A job is over."""
        self._in_use -= 1
        loop = asyncio.get_running_loop()
        self._quiet_from = loop.time() + QUIET_SECONDS
        loop.call_at(self._quiet_from, self._moved.notify)
        self._moved.notify()

    def _become(self, zygote: Zygote | None, problem: str | None) -> None:
        self._zygote, self.problem = zygote, problem
        for spare in self._warm:
            spare.close()
        self._warm.clear()
        self._moved.notify()
        self._changed()

    def _usable(self) -> bool:
        """Forgets spares that have died, and says whether one is left."""
        for spare in [spare for spare in self._warm if spare.gone.done()]:
            log.warning("spare_died", process=spare.number)
            self._warm.remove(spare)
            spare.close()
        return bool(self._warm)

    def _wants_spare(self) -> bool:
        self._usable()
        is_quiet = not self._in_use and asyncio.get_running_loop().time() >= self._quiet_from
        is_free = self._warms_beside_jobs or is_quiet
        is_settled = self._zygote is not None and self._zygote.settled.is_set()
        return is_settled and is_free and len(self._warm) + self._being_made < self._wanted

    async def _claim(self, warming: _Warming, request: Request) -> Process | None:
        """The spare that warms up, once it has stopped that; None where it did not come through it."""
        warming.is_claimed = True
        warming.process.give(request)
        try:
            await warming.over.wait()
        except BaseException:
            await asyncio.shield(warming.process.end())
            warming.process.close()
            raise
        return warming.process if warming.is_warm else None

    async def _until_warm(self, spare: Process) -> dict[str, float]:
        """The seconds that each of its steps took. Raises `ZygoteLost` and `TimeoutError`; then nothing of the spare is
        left."""
        try:
            async with asyncio.timeout(WARM_SECONDS):
                record = await records.read_record(spare.reports, 0)
            if record is None or record[0] != records.WARM:
                ended = await spare.end()
                said = (await spare.output.read(8192)).decode(errors="replace")[-2000:]
                raise ZygoteLost(f"a spare ended while it warmed up: {ended.in_words(said)}")
            return Warm.model_validate_json(record[1]).seconds
        except BaseException:
            await asyncio.shield(spare.end())
            spare.close()
            raise

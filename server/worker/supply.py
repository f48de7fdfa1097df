"""The supply of processes: it keeps a zygote alive and spares warm, and hands out what a job runs in.

A spare is made when it disturbs nobody: on a CPU while no job runs, since it would take a core from what is timed; and
always under the timing lease there. A spare that is not warm yet is waited for, as it is ahead of one that would begin
now. Where there is none at all, a process is forked that does its first steps within the job.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import structlog

from server.sandbox import JobLimits
from server.wire.messages import DeviceFacts
from server.worker import records
from server.worker.changes import Changes
from server.worker.channel import ZygoteConfig
from server.worker.forker import Process, Zygote, ZygoteLost
from server.worker.lease import TimingLease
from server.worker.records import Request

log = structlog.get_logger(__name__)

IMPORT_SECONDS = 180.0
"""How long a zygote may import; a cold disk takes most of it."""
WARM_SECONDS = 120.0
"""How long a spare may warm up."""


class Supply:
    """`changed` is called whenever `ready`, `problem`, `restarts` or `devices` may be others."""

    def __init__(
        self,
        config: ZygoteConfig,
        folder: Path,
        limits: JobLimits,
        spares: int,
        warms_beside_jobs: bool,
        lease: TimingLease,
        changed: Callable[[], None],
    ) -> None:
        self.problem: str | None = "it is starting"
        self.restarts = 0
        self.devices: tuple[DeviceFacts, ...] = ()
        self._config = config
        self._folder = folder
        self._limits = limits
        self._wanted = spares
        self._warms_beside_jobs = warms_beside_jobs
        self._lease = lease
        self._changed = changed
        self._zygote: Zygote | None = None
        self._warm: list[Process] = []
        self._is_warming = False
        self._in_use = 0
        self._moved = Changes()

    @property
    def ready(self) -> bool:
        return self._zygote is not None

    @property
    def warm_spares(self) -> int:
        return len(self._warm)

    async def keep_zygote(self) -> None:
        """Starts a zygote, and returns when one that was ready is gone. Raises `ZygoteLost` for one that never was."""
        try:
            zygote = await Zygote.start(self._config, self._folder, self._moved.notify)
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
        self._is_warming = True
        try:
            spare = await self._warmed()
            self._warm.append(spare)
            spare.gone.add_done_callback(lambda _: self._moved.notify())
        finally:
            self._is_warming = False
            self._moved.notify()

    async def take(self, request: Request) -> Process:
        """A process that was given `request`; its end is told to `give_back`. Raises `ZygoteLost` and `OSError`."""
        self._in_use += 1
        try:
            await self._moved.wait_for(lambda: self._usable() or not self._is_warming)
            if self._usable():
                spare = self._warm.pop(0)
                spare.give(request)
                return spare
            if self._zygote is None:
                raise ZygoteLost(self.problem or "it is starting")
            return await self._zygote.fork(self._limits, request)
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        """A job is over."""
        self._in_use -= 1
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
        is_free = self._warms_beside_jobs or not self._in_use
        is_settled = self._zygote is not None and self._zygote.settled.is_set()
        return is_settled and is_free and len(self._warm) < self._wanted

    async def _warmed(self) -> Process:
        """A new spare, warm."""
        quiet = contextlib.nullcontext() if self._warms_beside_jobs else self._lease.held()
        async with quiet:
            if self._zygote is None:
                raise ZygoteLost(self.problem or "it is starting")
            process = await self._zygote.fork(self._limits)
            try:
                async with asyncio.timeout(WARM_SECONDS):
                    record = await records.read_record(process.reports, 0)
                if record is None or record[0] != records.WARM:
                    await process.end()
                    said = await process.output.read(8192)
                    raise ZygoteLost(f"a spare ended while it warmed up: {said.decode(errors='replace')[-2000:]}")
                return process
            except BaseException:
                await asyncio.shield(process.end())
                process.close()
                raise

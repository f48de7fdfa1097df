"""The worker as a whole: a listening socket, connections with webs, slots, and what becomes of each job.

    run(settings)     the program: chooses a tier or refuses to start, listens, and serves until it is told to end
    Worker            the same without signals and logs, for whoever has a loop already
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import structlog

from server.sandbox import JobLimits, SandboxConfig
from server.wire.messages import Ended, Hello, Limits, Run, State, Tier, WorkerIdentity
from server.wire.profile import build_id, processor_name
from server.worker.channel import Program, ZygoteConfig
from server.worker.connections import Link
from server.worker.forker import Process, ZygoteLost
from server.worker.lease import TimingLease
from server.worker.records import Request
from server.worker.running import Allowance, NeverBegun, Place, RunningJob
from server.worker.supervision import Changes, supervised
from server.worker.supply import Supply

log = structlog.get_logger(__name__)

MOST_CONNECTIONS = 64
_FOLDER_PREFIX = "fusionscope-worker-"
_SHARE_FOR_JOB = 0.9
"""The part of its time in which a job is to end by itself, with all that it found, before it is stopped."""


class CannotListen(Exception):
    """The socket cannot be made; the message says why and what to do."""


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker is, beside its sandbox."""

    socket: Path
    profile: WorkerIdentity
    tier: Tier
    slots: int
    spares: int
    threads: int
    allowance: Allowance
    """The most that any job may use."""
    sandbox: SandboxConfig
    program: Program


class Worker:
    """One worker. Its folder is made with it, and removed when it stops."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._moved = Changes()
        self._lease = TimingLease()
        self._running = 0
        self._links: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None
        self._supply = Supply(
            ZygoteConfig(sandbox=config.sandbox, program=config.program, threads=config.threads),
            folder=config.sandbox.folder,
            limits=config.allowance.limits,
            spares=config.spares,
            warms_beside_jobs=config.profile.device == "cuda",
            lease=self._lease,
            changed=self._moved.notify,
        )

    async def start(self) -> None:
        """Listens, and returns at once; a connection hears when the worker is ready. Raises `CannotListen`."""
        self._server = await _listen(self._config.socket, self._connect)
        self._tasks = [
            asyncio.create_task(supervised("zygote", self._supply.keep_zygote)),
            asyncio.create_task(supervised("spares", self._supply.keep_spares)),
        ]

    async def stop(self) -> None:
        """Ends all jobs and everything below this process."""
        if self._server is not None:
            self._server.close()
            self._config.socket.unlink(missing_ok=True)
        for task in (*self._links, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._links, *self._tasks, return_exceptions=True)

    def hello(self) -> Hello:
        return Hello(
            build=build_id(),
            profile=self._config.profile,
            tier=self._config.tier,
            isolation=self._supply.isolation,
            slots=self._config.slots,
            devices=self._supply.devices,
        )

    def state(self, running: tuple[str, ...]) -> State:
        supply = self._supply
        return State(ready=supply.ready, problem=supply.problem, running=running, restarts=supply.restarts)

    async def run(self, run: Run, link: Link) -> Ended:
        """See `connections.Jobs`."""
        if self._running >= self._config.slots:
            return Ended(job=run.job, ending="worker_lost", problem="no slot is free")
        self._running += 1
        try:
            return await self._run_once(run, link)
        except NeverBegun as failure:
            log.warning("process_ended_before_its_job", said=str(failure)[-2000:])
        finally:
            self._running -= 1
        self._running += 1
        try:
            return await self._run_once(run, link)
        except NeverBegun as failure:
            return Ended(
                job=run.job, ending="worker_lost", problem="no process could begin it", last_output=str(failure)
            )
        finally:
            self._running -= 1

    async def _run_once(self, run: Run, link: Link) -> Ended:
        """Raises `NeverBegun`."""
        try:
            process = await self._supply.take()
        except (ZygoteLost, OSError) as failure:
            return Ended(job=run.job, ending="worker_lost", problem=str(failure))
        try:
            return await self._watched(run, link, process)
        finally:
            await asyncio.shield(process.end())
            process.close()
            self._supply.give_back()

    async def _watched(self, run: Run, link: Link, process: Process) -> Ended:
        allowance = _smaller(self._config.allowance, run.limits)
        job = RunningJob(run, process, allowance, self._lease, link.send)
        most = _SHARE_FOR_JOB * allowance.wall_seconds
        wanted = run.options.max_seconds
        options = run.options.model_copy(update={"max_seconds": most if wanted is None else min(wanted, most)})
        with link.cancelling(run.job, lambda: job.end("cancelled")):
            request = Request(source=run.source, options=options, threads=self._config.threads)
            return await job.watch(request, self._place(run))

    def _place(self, run: Run) -> Place:
        profile = self._config.profile
        is_cpu = profile.device != "cuda" or (run.options.device or "").startswith("cpu")
        return Place(
            tier=self._config.tier,
            isolation=self._supply.isolation,
            device="cpu" if is_cpu else "cuda",
            device_name=processor_name() if is_cpu and profile.device == "cuda" else profile.device_name,
        )

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._links) >= MOST_CONNECTIONS:
            log.warning("too_many_connections", allowed=MOST_CONNECTIONS)
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            await Link(reader, writer, self, self._moved).serve()
        finally:
            self._links.discard(task)


def _smaller(own: Allowance, wanted: Limits) -> Allowance:
    limits = own.limits
    return Allowance(
        wall_seconds=min(own.wall_seconds, wanted.wall_seconds),
        output_bytes=min(own.output_bytes, wanted.output_bytes),
        report_bytes=min(own.report_bytes, wanted.report_bytes),
        limits=limits.model_copy(
            update={
                "memory_bytes": min(limits.memory_bytes, wanted.memory_bytes or limits.memory_bytes),
                "disk_bytes": min(limits.disk_bytes, wanted.disk_bytes or limits.disk_bytes),
            }
        ),
    )

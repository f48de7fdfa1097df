"""The worker as a whole: a listening socket, connections with webs, slots, and what becomes of each job.

run       the program: chooses a tier or refuses to start, listens, and serves until it is told to end
Worker    the same without signals and logs, for whoever has a loop already
"""

from __future__ import annotations

import asyncio
import signal
import sys
from functools import partial

import structlog

from server import logs
from server.own_folders import OwnFolder
from server.sandbox import NoSandbox
from server.settings import WorkerSettings
from server.supervised import Supervised
from server.wire.messages import NO_SLOT, Ended, GpuHealth, Hello, Run, State
from server.wire.profile import build_id, processor_name
from server.worker.changes import Changes
from server.worker.channel import Program, ZygoteConfig
from server.worker.config import Allowance, WorkerConfig, smaller, worker_config
from server.worker.connections import Link
from server.worker.forker import ZygoteLost
from server.worker.gpu import Gpu
from server.worker.lease import TimingLease
from server.worker.listening import CannotListen, listen
from server.worker.records import Request
from server.worker.running import NeverBegun, Place, RunningJob
from server.worker.supply import Supply
from server.worker.zygote_start import Started

log = structlog.get_logger(__name__)

MOST_CONNECTIONS = 64
_TRIES_TO_BEGIN = 2
"""A spare may have been killed while it waited; that is no failure of the job that it was given. All spares may have
been, so the last try has a process of its own."""
_SHARE_FOR_JOB = 0.9
"""The part of its time in which a job is to end by itself, with all that it found, before it is stopped."""

_HEALTH_SECONDS = 10.0
"""Between two looks at how the GPU does."""

CANNOT_START = 3
"""The program's exit code where it never listened: no tier works, or the socket cannot be made."""


def run(
    settings: WorkerSettings,
    program: Program | None = None,
    ends_with_stdin: bool = False,
    zygote: Started | None = None,
) -> int:
    """The program. Returns its exit code when a SIGTERM or SIGINT says that it should end, or with `ends_with_stdin`
    when nobody holds the other end of its standard input any more: whoever started it has died. `zygote` was started
    beforehand, and imports while the tier is found."""
    logs.configure(settings.log_format)
    with OwnFolder("fusionscope-worker-") as folder:
        try:
            config = worker_config(settings, program or Program(), folder.path)
            asyncio.run(_serve(Worker(config, zygote), ends_with_stdin))
        except (NoSandbox, CannotListen) as refusal:
            print(f"The worker does not start: {refusal}", file=sys.stderr)
            return CANNOT_START
    return 0


async def _serve(worker: Worker, ends_with_stdin: bool) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    if ends_with_stdin:
        ends = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(ends), sys.stdin.buffer)
        reading = asyncio.create_task(ends.read(1))
        reading.add_done_callback(lambda _: told.set())
    await worker.start()
    try:
        await told.wait()
    finally:
        await worker.stop()


class Worker:
    """One worker. Its folder is the caller's to remove."""

    def __init__(self, config: WorkerConfig, zygote: Started | None = None) -> None:
        self._config = config
        self._moved = Changes()
        self._lease = TimingLease()
        self._gpu = Gpu.found() if config.profile.device == "cuda" else None
        self._health: GpuHealth | None = None
        self._running = 0
        self._links: set[asyncio.Task[None]] = set()
        self._tasks = Supervised()
        self._server: asyncio.Server | None = None
        self._supply = Supply(
            ZygoteConfig(sandbox=config.sandbox, program=config.program, threads=config.threads),
            limits=config.allowance.limits,
            spares=config.spares,
            warms_beside_jobs=config.profile.device == "cuda",
            lease=self._lease,
            changed=self._moved.notify,
            groups=config.groups,
            first=zygote,
        )

    async def start(self) -> None:
        """Listens, and returns at once; a connection hears when the worker is ready. Raises `CannotListen`."""
        self._server = await listen(self._config.socket, self._connect)
        self._tasks.forever("zygote", self._supply.keep_zygote)
        if self._gpu is not None:
            self._tasks.forever("GPU", partial(self._look_after, self._gpu))
        for number in range(self._config.spares_at_once):
            self._tasks.forever(f"spares {number + 1}", self._supply.make_spare)

    async def _look_after(self, gpu: Gpu) -> None:
        self._health = await asyncio.to_thread(gpu.health)
        self._moved.notify()
        await asyncio.sleep(_HEALTH_SECONDS)

    async def stop(self) -> None:
        """Ends all jobs and everything below this process."""
        if self._server is not None:
            self._server.close()
            self._config.socket.unlink(missing_ok=True)
        for task in self._links:
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        await self._tasks.stop()

    def hello(self) -> Hello:
        return Hello(
            build=build_id(),
            profile=self._config.profile,
            tier=self._config.tier,
            isolation=self._config.isolation,
            slots=self._config.slots,
            devices=self._supply.devices,
        )

    def state(self, running: tuple[str, ...]) -> State:
        supply = self._supply
        problem = (self._health and self._health.problem) or supply.problem
        is_ready = supply.ready and problem is None
        return State(ready=is_ready, problem=problem, running=running, restarts=supply.restarts, gpu=self._health)

    async def run(self, run: Run, link: Link) -> Ended:
        """See `connections.Jobs`."""
        if self._running >= self._config.slots:
            return Ended(job=run.job, ending="worker_lost", problem=NO_SLOT)
        self._running += 1
        try:
            said = ""
            for left in reversed(range(_TRIES_TO_BEGIN)):
                try:
                    return await self._run_once(run, link, in_spare=left > 0)
                except NeverBegun as failure:
                    said = str(failure)
                    log.warning("process_ended_before_its_job", said=said[-2000:])
            return Ended(job=run.job, ending="worker_lost", problem="no process could begin it", last_output=said)
        finally:
            self._running -= 1

    async def _run_once(self, run: Run, link: Link, in_spare: bool) -> Ended:
        """Raises `NeverBegun`."""
        allowance = smaller(self._config.allowance, run.limits, self._config.threads)
        try:
            process = await self._supply.take(self._request(run, allowance), in_spare)
        except (ZygoteLost, OSError) as failure:
            return Ended(job=run.job, ending="worker_lost", problem=str(failure))
        try:
            job = RunningJob(run, process, allowance, self._lease, link.send, self._gpu)
            with link.cancelling(run.job, lambda: job.end("cancelled")):
                return await job.watch(self._place(run))
        finally:
            await asyncio.shield(process.end())
            process.close()
            self._supply.give_back()

    def _request(self, run: Run, allowance: Allowance) -> Request:
        most = _SHARE_FOR_JOB * allowance.wall_seconds
        wanted = run.options.max_seconds
        options = run.options.model_copy(update={"max_seconds": most if wanted is None else min(wanted, most)})
        return Request(source=run.source, options=options, threads=self._config.threads, limits=allowance.limits)

    def _place(self, run: Run) -> Place:
        profile = self._config.profile
        is_cpu = profile.device != "cuda" or (run.options.device or "").startswith("cpu")
        return Place(
            tier=self._config.tier,
            isolation=self._config.isolation,
            device="cpu" if is_cpu else "cuda",
            device_name=processor_name() if is_cpu and profile.device == "cuda" else profile.device_name,
        )

    def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._links) >= MOST_CONNECTIONS:
            log.warning("too_many_connections", allowed=MOST_CONNECTIONS)
            writer.transport.abort()
            return
        task = asyncio.create_task(Link(reader, writer, self, self._moved).serve(), name="connection")
        self._links.add(task)
        task.add_done_callback(self._disconnect)

    def _disconnect(self, task: asyncio.Task[None]) -> None:
        self._links.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            log.error("connection_failed", exc_info=failure)

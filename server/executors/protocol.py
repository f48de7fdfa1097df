"""What web asks of whatever runs jobs.

An executor has devices, each with slots. Web submits a job while a slot of a fitting device is free, and reads its
events, which always end with `Ended`: a worker that dies makes an `Ended` with the ending "worker_lost". The executor
knows nothing of queues, retries or the database. It keeps no job that nobody holds the handle of.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from compiler.options import Options
from server.wire.messages import (
    Changed,
    DeviceFacts,
    Ended,
    GpuHealth,
    JobName,
    Limits,
    Log,
    Started,
    Tier,
    WorkerIdentity,
)

Event = tuple[Started | Changed | Log | Ended, bytes]
"""A message about one job, with the payload that `Changed` has and the others lack."""


class NoSlot(Exception):
    """No device of the wanted profile has a free slot now; the message says why."""


@dataclass(frozen=True)
class Spec:
    """One attempt at one job. `profile` names the device that it must run on."""

    job: JobName
    source: str
    options: Options
    limits: Limits
    profile: WorkerIdentity


@dataclass(frozen=True)
class WorkerDevice:
    """One worker's device as it stands. `free` slots can be submitted to; there are none while it is not `ready`."""

    name: str
    """Unique within the executor, and the same after a restart of the worker: a socket's path, a node and its GPU."""
    profile: WorkerIdentity
    slots: int
    free: int
    ready: bool
    problem: str | None
    """Why it is not ready, as a clause without a full stop."""
    tier: Tier | None
    isolation: tuple[str, ...]
    facts: tuple[DeviceFacts, ...]
    restarts: int
    gpu: GpuHealth | None = None


class Handle(Protocol):
    """A job that was submitted."""

    def events(self) -> AsyncGenerator[Event]:
        """Every event, in order, the last of them `Ended`. To be read once, and closed by whoever reads no further.
        Raises nothing of the job's or worker's."""
        ...

    async def cancel(self) -> None:
        """Asks for the end; `events` then ends soon. Does nothing where the job is over."""
        ...


class Executor(Protocol):
    async def start(self) -> None:
        """Returns at once; devices appear as their workers are found."""
        ...

    async def stop(self) -> None:
        """Ends every job and lets the workers go."""
        ...

    def devices(self) -> tuple[WorkerDevice, ...]:
        """All devices that are known, ready or not."""
        ...

    async def changed(self) -> None:
        """Waits until `devices` says something else than it did when this was called. Whoever submits a job knows that
        a slot is taken, and is not told."""
        ...

    async def submit(self, spec: Spec) -> Handle:
        """Begins a job. Raises `NoSlot`."""
        ...

"""The messages: frozen, of a known `kind`, with no field but those declared.

A job is known by a name that is unique to each attempt at it, `{exploration id}.{attempt}`: what is late from an
earlier attempt is never taken for the next one's. Several jobs run at once on one connection, up to `Hello.slots`.

    worker → web   Hello, then for each job Started, Changed and Log any number of times, Ended once; State whenever it
                   changes, and every `HEARTBEAT_SECONDS` besides
    web → worker   Welcome, Run, Cancel

Web sends `Run` only while `State.ready` holds and fewer than `slots` jobs run. A worker that cannot run a job after
all answers with `Ended` and the ending "worker_lost"; such a job is tried again elsewhere or later.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from compiler.options import Options
from server.wire.frames import FrameError, read_frame, write_frame

PROTOCOL = 1
"""Raised with each change that the other side would not understand."""

HEARTBEAT_SECONDS = 5.0
"""A worker sends its `State` at least this often; one that is silent for four times as long counts as lost."""

Tier = Literal["A", "B", "trusted"]
"""What confines a snippet: namespaces; Landlock and seccomp; nothing, since the operator trusts the snippets."""

Ending = Literal[
    "exited",
    "time_limit",
    "output_limit",
    "report_limit",
    "memory_limit",
    "disk_limit",
    "cancelled",
    "worker_lost",
]
"""Why a job is over: it ended by itself, overstepped a limit, was cancelled, or something around it broke."""

NO_SLOT = "no slot is free"
"""The `problem` of a job that the worker has refused since others took its slots, those of another web for instance."""

JobName = Annotated[str, Field(min_length=1, max_length=80)]


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerIdentity(Message):
    """The device profile: what of a machine a report depends on, and so what ids are made of."""

    python: str = Field(default="", description="Python's version.", examples=["3.11.9"])
    torch: str = Field(default="", description="torch's version.", examples=["2.13.0"])
    triton: str | None = Field(default=None, description="Triton's version; null where there is none.")
    device: str = Field(default="cpu", description='"cpu" or "cuda".', examples=["cuda"])
    device_name: str = Field(default="", description="As its maker calls it.", examples=["NVIDIA H200"])


class DeviceFacts(Message):
    """A device that kernels can be generated for: its name, its target, and its other figures by their names."""

    name: str = Field(description="As the compiler calls it.", examples=["H200"])
    kind: str = Field(description='"cpu" or "cuda".', examples=["cuda"])
    target: str = Field(description="What kernels for it are generated for.", examples=["sm_90"])
    facts: dict[str, int | float | bool | str] = Field(
        description="Its figures, such as bandwidths and sizes of memories, each with its unit in its name.",
        examples=[{"multiprocessors": 132}],
    )


class Limits(Message):
    """What one job may use. The worker has limits of its own; the smaller of the two holds, None asks for none."""

    wall_seconds: float = Field(gt=0, description="From `Started` on, without waiting for the timing lease.")
    output_bytes: int = Field(gt=0, description="Raw output, after which the job is ended.")
    report_bytes: int = Field(gt=0, description="All payloads of `Changed` together, after which the job is ended.")
    memory_bytes: int | None = Field(default=None, gt=0, description="Over all processes of the job.")
    disk_bytes: int | None = Field(default=None, gt=0, description="Of the job's folder and /dev/shm together.")


class Welcome(Message):
    """Web takes the worker. `build` is web's own, for the worker's log."""

    kind: Literal["welcome"] = "welcome"
    protocol: int = PROTOCOL
    build: str


class Run(Message):
    """One job to run."""

    kind: Literal["run"] = "run"
    job: JobName
    source: str
    options: Options
    limits: Limits


class Cancel(Message):
    """The end of a job is wanted. One that is not known is over already, and the message is passed over."""

    kind: Literal["cancel"] = "cancel"
    job: JobName


class Hello(Message):
    """Who the worker is: its first message, sent again when something of it becomes known (`devices`, once the
    compiler is imported). Web compares `protocol`, `build` and `profile` with its own and refuses what differs."""

    kind: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    build: str
    profile: WorkerIdentity
    tier: Tier
    isolation: tuple[str, ...] = Field(description="The layers that a trial child found in force, in words.")
    slots: int = Field(ge=1, le=1024, description="Jobs that run at the same time.")
    devices: tuple[DeviceFacts, ...] = ()


class GpuHealth(Message):
    """How a GPU does, as NVIDIA's management library tells it; None where this GPU has no answer."""

    problem: str | None = Field(default=None, description="Why it cannot be used, as a clause without a full stop.")
    memory_used_bytes: int | None = Field(default=None, description="Memory that all its processes have.")
    memory_total_bytes: int | None = Field(default=None, description="Memory that it has.")
    temperature_c: float | None = Field(default=None, description="Its temperature, in degrees Celsius.")
    power_w: float | None = Field(default=None, description="What it draws, in watts.")
    busy_share: float | None = Field(default=None, description="Share of the last moments in which a kernel ran.")
    uncorrected_errors: int | None = Field(
        default=None, description="Errors of its memory that could not be corrected, since the driver was loaded."
    )


class GpuWhileTimed(Message):
    """Clocks of the GPU while a job had the timing lease."""

    looks: int = Field(description="How often the worker looked.")
    sm_mhz_least: float = Field(description="Lowest clock of its multiprocessors that was seen.")
    sm_mhz_possible: float | None = Field(default=None, description="Highest clock that it has.")
    temperature_c_most: float | None = Field(default=None, description="Highest temperature that was seen.")
    slowed_by: tuple[str, ...] = Field(default=(), description="What slowed it, at any of these looks.")


class State(Message):
    """How the worker does. `running` names the jobs that it knows of: web takes a job that is missing for lost."""

    kind: Literal["state"] = "state"
    ready: bool
    problem: str | None = Field(default=None, description="Why it is not ready, as a clause without a full stop.")
    running: tuple[JobName, ...] = ()
    restarts: int = Field(default=0, ge=0, description="Times that what runs snippets had to be started again.")
    gpu: GpuHealth | None = Field(default=None, description="How its GPU does, as of some seconds ago.")


class Started(Message):
    """The snippet begins now: its time runs from here. `wall_seconds` is the limit in force."""

    kind: Literal["started"] = "started"
    job: JobName
    wall_seconds: float


class Changed(Message):
    """Parts of the job's report have changed; the payload has them (see `parts`). It was written by the snippet's own
    process: the worker counts its bytes and never reads it."""

    kind: Literal["changed"] = "changed"
    job: JobName


class Log(Message):
    """Raw output of the snippet's process that did not go into the report."""

    kind: Literal["log"] = "log"
    job: JobName
    text: str


class Ended(Message):
    """The job is over and nothing of it runs any more. All that is said here was seen from outside of the job; None
    where it could not be seen."""

    kind: Literal["ended"] = "ended"
    job: JobName
    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = Field(default=0.0, description="From `Started` on, all waiting included.")
    waited_seconds: float = Field(default=0.0, description="Of these: waiting for the device's timing lease.")
    processor_seconds: float | None = None
    peak_memory_bytes: int | None = Field(default=None, description="Of all its processes at one time.")
    peak_gpu_memory_bytes: int | None = None
    gpu_while_timed: GpuWhileTimed | None = None
    tier: Tier | None = None
    isolation: tuple[str, ...] = ()
    device: str = Field(default="", description='"cpu" or "cuda": what the job was given.')
    device_name: str = ""
    output_bytes: int = 0
    report_bytes: int = 0
    last_output: str = Field(default="", description="The end of the raw output; a crash leaves its stack there.")
    problem: str | None = Field(default=None, description="What broke, where the ending is worker_lost.")


ToWorker = TypeAdapter[Welcome | Run | Cancel](Annotated[Welcome | Run | Cancel, Field(discriminator="kind")])
FromWorker = TypeAdapter[Hello | State | Started | Changed | Log | Ended](
    Annotated[Hello | State | Started | Changed | Log | Ended, Field(discriminator="kind")]
)


async def send(writer: asyncio.StreamWriter, message: Message, payload: bytes = b"") -> None:
    """Writes `message`, and waits while the peer is slower. Raises `ConnectionError` where the peer is gone."""
    await write_frame(writer, message.model_dump_json().encode(), payload)


async def next_for_worker(reader: asyncio.StreamReader) -> Welcome | Run | Cancel | None:
    """What web says next; None when it has gone. Raises `FrameError` for anything that is no message."""
    found = await read_frame(reader, 0)
    if found is None:
        return None
    try:
        return ToWorker.validate_json(found[0])
    except ValidationError as failure:
        raise FrameError(_first(failure)) from None


async def next_from_worker(
    reader: asyncio.StreamReader, most_payload_bytes: int
) -> tuple[Hello | State | Started | Changed | Log | Ended, bytes] | None:
    """What the worker says next, with its payload; None when it has gone.

    Raises `FrameError` for anything that is no message, or has a payload and may have none.
    """
    found = await read_frame(reader, most_payload_bytes)
    if found is None:
        return None
    header, payload = found
    try:
        message = FromWorker.validate_json(header)
    except ValidationError as failure:
        raise FrameError(_first(failure)) from None
    if payload and not isinstance(message, Changed):
        raise FrameError(f"A message of the kind {message.kind!r} has no payload; this one has {len(payload)} bytes.")
    return message, payload


def _first(failure: ValidationError) -> str:
    # The input itself is left out: it may be long, and it may be a snippet.
    error = failure.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"No message: {error['msg']} at {'.'.join(map(str, error['loc'])) or 'its top'}."

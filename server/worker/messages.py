"""What the service and a worker say to each other: one JSON object a line.

A report is the one exception. It comes from the snippet's own process, so it is never read on the way: `ReportAhead`
announces its length, and that many bytes follow as they were written, for the service to check.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from compiler.options import Options
from server.identity import WorkerIdentity
from server.sandbox.confine import Limits


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerConfig(Message):
    """The first line that a worker reads. `target` names the function that explores, as `module:function`.

    `imports` are the modules that the parent loads before the first job, so that no job has to wait for them.
    """

    target: str = "compiler.pipeline:explore"
    imports: tuple[str, ...] = (
        "torch",
        "torch._dynamo",
        "torch._functorch.aot_autograd",
        "compiler.pipeline",
        "compiler.runtime.preload",
        "compiler.peer.preload",
    )
    folder: str
    cpu_limits: Limits
    gpu_limits: Limits
    output_bytes: int
    report_bytes: int
    threads: int


class Run(Message):
    kind: Literal["run"] = "run"
    job: str
    source: str
    options: Options
    wall_seconds: float


class Cancel(Message):
    kind: Literal["cancel"] = "cancel"
    job: str


class DeviceFacts(Message):
    """A device that kernels can be generated for: its name, its target, and its other figures by their names."""

    name: str
    kind: str
    target: str
    facts: dict[str, int | float | bool | str]


class Hello(Message):
    """The worker is warm. `isolation` lists the layers that a trial child found in force; `devices` the devices that
    the compiler knows, which it can only say once torch is imported."""

    kind: Literal["hello"] = "hello"
    identity: WorkerIdentity
    isolation: tuple[str, ...]
    devices: tuple[DeviceFacts, ...] = ()


class Failed(Message):
    """The worker cannot start; `message` says why."""

    kind: Literal["failed"] = "failed"
    message: str


class ReportAhead(Message):
    kind: Literal["report"] = "report"
    job: str
    bytes: int


class Log(Message):
    """Raw output of the snippet's process that did not go into the report."""

    kind: Literal["log"] = "log"
    job: str
    text: str


Ending = Literal["exited", "time_limit", "output_limit", "report_limit", "cancelled", "worker_lost"]


class Ended(Message):
    """The job is over and nothing of it runs any more. What is said here was seen from outside of the job."""

    kind: Literal["ended"] = "ended"
    job: str
    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    last_output: str = ""


ToWorker = TypeAdapter[Run | Cancel](Annotated[Run | Cancel, Field(discriminator="kind")])
FromWorker = TypeAdapter[Hello | Failed | ReportAhead | Log | Ended](
    Annotated[Hello | Failed | ReportAhead | Log | Ended, Field(discriminator="kind")]
)

"""What was seen of an exploration from outside, by the service that ran it. All else in a report is what the snippet's
own process says of itself."""

from __future__ import annotations

from pydantic import Field

from compiler.report.model import ReportModel


class GpuWhileTimed(ReportModel):
    """Clocks of the GPU while the snippet had it for itself, to be timed. The service looked from outside."""

    looks: int = Field(description="How often the service looked.")
    sm_mhz_least: float = Field(description="Lowest clock of its multiprocessors that was seen, in MHz.")
    sm_mhz_possible: float | None = Field(default=None, description="Highest clock that it has, in MHz.")
    temperature_c_most: float | None = Field(
        default=None, description="Highest temperature that was seen, in degrees Celsius."
    )
    slowed_by: list[str] = Field(
        default=[], description='What slowed it at any of these looks, such as "power cap"; empty where nothing did.'
    )


class Observed(ReportModel):
    """How the process of the snippet ran and ended, as the service saw it. The snippet cannot change any of this."""

    attempt: int = Field(default=1, description="Which attempt this is: earlier ones were lost with their worker.")
    ending: str = Field(
        default="",
        description='Why it was over, empty while it runs: "exited" by itself, a limit that it overstepped '
        '("time_limit", "output_limit", "report_limit", "memory_limit", "disk_limit"), "cancelled", or "worker_lost".',
    )
    exit_code: int | None = Field(default=None, description="Exit code of the process, where it exited.")
    signal: int | None = Field(default=None, description="Number of the signal that ended the process, if one did.")
    wall_seconds: float = Field(
        default=0.0,
        description="From the snippet's start to its end, or until now while it runs; all waiting included.",
    )
    wall_limit_seconds: float | None = Field(
        default=None, description="How long it may run, without waiting for the device; null where it has not begun."
    )
    waited_seconds: float = Field(default=0.0, description="Of these: waiting until others had timed on the device.")
    processor_seconds: float | None = Field(default=None, description="Processor time of all its processes.")
    peak_memory_bytes: int | None = Field(default=None, description="Most memory of all its processes at one time.")
    peak_gpu_memory_bytes: int | None = Field(default=None, description="Most memory on the GPU at one time.")
    gpu_while_timed: GpuWhileTimed | None = Field(
        default=None,
        description="Clocks of its GPU meanwhile; null on a CPU, or where the driver says nothing.",
    )
    tier: str | None = Field(
        default=None,
        description='What confined it: "A" namespaces, "B" Landlock and seccomp, "trusted" nothing, by the operator.',
    )
    isolation: list[str] = Field(default=[], description="The layers of that in force, in words.")
    python: str = Field(default="", description="Version of Python on the worker.")
    torch: str = Field(default="", description="Version of torch on the worker.")
    triton: str | None = Field(default=None, description="Version of Triton on the worker, where it has one.")
    device: str = Field(default="", description='"cpu" or "cuda": what it was given.')
    device_name: str = Field(default="", description="Name of that device.")
    contradictions: list[str] = Field(
        default=[],
        description="What the report says and cannot be, a sentence each. Such a report is not given as an answer "
        "again, and the figures that cannot be are left out.",
    )

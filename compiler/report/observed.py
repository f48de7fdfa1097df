"""What was seen of an exploration from outside, by the service that ran it. All else in a report is what the snippet's
own process says of itself."""

from __future__ import annotations

from pydantic import Field

from compiler.report.model import ReportModel


class GpuWhileTimed(ReportModel):
    """Clocks of the GPU while the snippet had it for itself, to be timed. The service looked from outside."""

    looks: int = Field(description="How often the service looked.")
    sm_mhz_least: float = Field(description="The lowest clock of the multiprocessors that was seen, in MHz.")
    sm_mhz_possible: float | None = Field(default=None, description="The highest clock that the GPU has, in MHz.")
    temperature_c_most: float | None = Field(
        default=None, description="The highest temperature that was seen, in degrees Celsius."
    )
    slowed_by: list[str] = Field(
        default=[], description='What slowed it at any of these looks, such as "power cap". Empty if nothing did.'
    )


class Observed(ReportModel):
    """How the process of the snippet ran and ended, as the service saw it. The snippet cannot change any of this."""

    attempt: int = Field(default=1, description="Number of this attempt. Earlier attempts were lost with their worker.")
    ending: str = Field(
        default="",
        description='Why it ended: "exited" by itself, a limit that it exceeded ("time_limit", "output_limit", '
        '"report_limit", "memory_limit", "disk_limit"), "cancelled", or "worker_lost". Empty while it '
        "runs.",
    )
    exit_code: int | None = Field(default=None, description="Exit code of the process, if it exited.")
    signal: int | None = Field(default=None, description="Number of the signal that ended the process, if one did.")
    wall_seconds: float = Field(
        default=0.0,
        description="Seconds from the snippet's start to its end, or until now while it runs. All waiting is included.",
    )
    wall_limit_seconds: float | None = Field(
        default=None, description="Seconds that it may run, without waiting for the device."
    )
    waited_seconds: float = Field(default=0.0, description="Seconds of `wall_seconds` that it waited for the device.")
    processor_seconds: float | None = Field(default=None, description="Processor time of all its processes.")
    peak_memory_bytes: int | None = Field(default=None, description="Most memory of all its processes at one time.")
    peak_gpu_memory_bytes: int | None = Field(default=None, description="The most memory on the GPU at one time.")
    gpu_while_timed: GpuWhileTimed | None = Field(
        default=None,
        description="Clocks of its GPU meanwhile. Null on a CPU, and if the driver gives none.",
    )
    tier: str | None = Field(
        default=None,
        description='What confined it: "A" namespaces, "B" Landlock and seccomp, "trusted" nothing.',
    )
    isolation: list[str] = Field(default=[], description="The layers of isolation in force, in words.")
    python: str = Field(default="", description="Version of Python on the worker.")
    torch: str = Field(default="", description="Version of torch on the worker.")
    triton: str | None = Field(default=None, description="Version of Triton on the worker. Null if it has none.")
    device: str = Field(default="", description='The device that it was given: "cpu" or "cuda".')
    device_name: str = Field(default="", description="Name of that device.")
    contradictions: list[str] = Field(
        default=[],
        description="Statements of the report that cannot be true, a sentence each. Such a report is not given as "
        "an answer again. Figures that cannot be true are left out.",
    )

"""How the launches of a graph reach the device: as one CUDA graph, or one by one."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from compiler.report.model import ReportModel


class CallTimes(ReportModel):
    """One call of a graph, measured: until the host has returned, and between the events before its first launch and
    after its last, in microseconds; the least of the calls that were timed."""

    measured_host_us: float = Field(description="Microseconds until the host has returned.")
    measured_elapsed_us: float = Field(
        description="Microseconds on the device, from before the first launch until after the last."
    )


class ReplayInput(ReportModel):
    """An input of a recording: "in_place" is read where the caller has it, "copied" goes to the recording's memory in
    each call, "held" lies in that of the graph that made it, which gives it without a copy."""

    name: str = Field(description="The input's name in `aten`.")
    bytes: int = Field(description="Bytes of all its elements.")
    way: Literal["in_place", "copied", "held"] = Field(description="Where a replay reads it.")


class Replay(ReportModel):
    """Whether the launches of a graph are recorded and replayed as one CUDA graph, and why. What is told of a recording
    is empty where there is none."""

    verdict: Literal["replayed", "one_by_one"] = Field(description="How launches reach the device.")
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str = Field(description="The reason in a sentence.")
    numbers: dict[str, Any] = Field(default={}, description="The numbers that the reason speaks of, by name.")
    option: Literal["auto", "on", "off"] = Field(description="The option `cuda_graphs`, as the mode changes it.")
    node: str | None = Field(default=None, description="The library call that prevents a replay.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that the library call came from.")
    launches: int = Field(default=0, description="Launches of a call, library calls included.")
    library_calls: int = Field(default=0, description="Library calls among the launches.")
    recorded_launches: int | None = Field(default=None, description="Launches that were recorded.")
    recorded_library_calls: int | None = Field(default=None, description="Library calls that were recorded.")
    inputs: list[ReplayInput] = Field(default=[], description="How each input of a recording is read.")
    copied_in_bytes: int | None = Field(
        default=None, description="Bytes that are copied to the recording's memory in each call."
    )
    copied_out_bytes: int | None = Field(default=None, description="Bytes that are copied out of it in each call.")
    held_bytes: int | None = Field(
        default=None, description="Bytes that a forward graph saves and gives without a copy."
    )
    pool_bytes: int | None = Field(
        default=None, description="Bytes of the pool that all recordings on one stream share. torch counts them."
    )
    recordings: int = Field(default=0, description="How many recordings were made.")
    replays: int = Field(default=0, description="Calls that were replays so far, the timed ones included.")
    launched_calls: int = Field(default=0, description="Calls that were launched one by one despite a recording.")
    launched: CallTimes | None = Field(default=None, description="Times of a call launch by launch.")
    replayed: CallTimes | None = Field(default=None, description="Times of a replay.")
    predicted_host_us: float | None = Field(default=None, description="Predicted microseconds of a replay on the host.")

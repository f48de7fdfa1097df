"""What was measured: eager, ours and the peer, each with every sample. A wrong result has no speed: who gave one is no
contestant, and what is wrong is told instead."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel


class Contestant(ReportModel):
    """Wall time of one way to run the same calls, in milliseconds; every sample is kept."""

    name: str = Field(description='Which way it is: "eager", "compiled" (ours), "peer", or another by its own name.')
    samples_ms: list[float] = Field(description="Every sample, in milliseconds, in the order in which they were taken.")
    median_ms: float = Field(description="The median of the samples, in milliseconds.")
    low_ms: float = Field(description="25th percentile.")
    high_ms: float = Field(description="75th percentile.")
    compile_s: float | None = Field(
        default=None, description="Seconds of its first call, compiling included; null where it was not taken."
    )


class WrongResult(ReportModel):
    """An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph
    there is none.

    `error` and `eager_error` are relative, against float64, and `tolerance` is the largest that was allowed; null where
    the output cannot be compared: it has another shape or dtype than eager's, or NaN where eager has none."""

    contestant: Literal["compiled", "peer"] = Field(description="Whose output it is.")
    graph: str | None = Field(default=None, description="The graph that gives it; null for a result of a whole call.")
    entry: str | None = Field(default=None, description="The function that was called.")
    output: str = Field(description="Its name: of a graph's output the ATen node, of a call's \"the gradient of x\".")
    error: float | None = Field(
        default=None, description="Its relative error against float64; null where it cannot be compared."
    )
    eager_error: float | None = Field(
        default=None, description="That of eager's output; null where the output cannot be compared."
    )
    tolerance: float | None = Field(
        default=None, description="The largest error that was allowed; null where the output cannot be compared."
    )
    message: str = Field(description="Which output is wrong and by how much, in a sentence.")


class TimingResult(ReportModel):
    """`contestants` are those whose results are right, or could not be checked."""

    method: str = Field(description="How times were taken, in sentences.")
    device: str = Field(description="The GPU's name, or cpu.")
    cold_l2: bool = Field(description="Whether the L2 cache was cleared before each sample.")
    contestants: list[Contestant] = Field(default=[], description="The times of each way to run the calls.")

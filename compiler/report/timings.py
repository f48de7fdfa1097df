"""What was measured: eager, ours and the peer, each with every sample. A wrong result has no speed: who gave one is no
contestant, and what is wrong is told instead."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, example


class Contestant(ReportModel):
    """Wall time of one way to run the same calls, in milliseconds; every sample is kept."""

    name: str = Field(description='"eager", "compiled" (ours), "peer", or the name of another contestant.')
    samples_ms: list[float] = Field(description="Every sample, in milliseconds, in the order in which they were taken.")
    median_ms: float = Field(description="The median of the samples, in milliseconds.")
    low_ms: float = Field(description="The 25th percentile of the samples, in milliseconds.")
    high_ms: float = Field(description="The 75th percentile of the samples, in milliseconds.")
    spread_ms: float | None = Field(
        default=None,
        description="How much the median of another run may differ, in 95 of 100 runs. Null in older reports.",
    )
    ratio_factor: float | None = Field(
        default=None,
        description="The factor by which the ratio of eager's median to this one may differ in another run, in 95 "
        "of 100 runs. 1.04 is 4 %. Samples are interleaved, so the two spreads do not give this "
        "factor. Null if unknown.",
    )
    compile_s: float | None = Field(
        default=None, description="Seconds of the first call, compiling included. Null if it was not timed."
    )
    differs_from_eager: bool | None = Field(
        default=None,
        description="Whether the ratio to eager is further from 1 than `ratio_factor`.",
    )


CompilePhaseName = Literal["capture", "lowering", "scheduling", "code generation", "build"]


class CompilePhase(ReportModel):
    """What one phase of compiling took, of all graphs together: ours by the clock, the peer's by torch's counters."""

    model_config = example(phase="build", compiled_seconds=0.42, peer_seconds=3.1)

    phase: CompilePhaseName = Field(
        description="Capture is Dynamo and AOTAutograd. Build is the compilation by g++ or Triton."
    )
    compiled_seconds: float | None = Field(default=None, description="Our seconds. Null if none were taken.")
    peer_seconds: float | None = Field(default=None, description="The peer's seconds. Null if none were taken.")


class WrongResult(ReportModel):
    """An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph
    there is none.

    `error` and `eager_error` are relative, against float64, and `tolerance` is the largest that was allowed. They are
    null if the output cannot be compared: its shape or dtype is not eager's, or it has NaN where eager has none."""

    contestant: Literal["compiled", "peer"] = Field(description="The contestant that gave it.")
    graph: str | None = Field(default=None, description="The graph that gives it. Null for a whole call's result.")
    entry: str | None = Field(default=None, description="The function that was called.")
    output: str = Field(description='Its name: the ATen node of a graph\'s output, or "the gradient of x".')
    error: float | None = Field(default=None, description="Its relative error against float64. Null if not comparable.")
    eager_error: float | None = Field(
        default=None, description="Relative error of eager's output. Null if not comparable."
    )
    tolerance: float | None = Field(
        default=None, description="The largest error that was allowed. Null if not comparable."
    )
    message: str = Field(description="Which output is wrong and by how much, in a sentence.")


class ElementErrors(ReportModel):
    """Errors of the elements of one output against float64, those left out that are NaN or infinite."""

    model_config = example(largest=2.4e-7, mean=1.9e-8, largest_ulp=1.6, mean_ulp=0.31)

    largest: float = Field(description="The largest difference of an element.")
    mean: float = Field(description="The mean of all differences.")
    largest_ulp: float = Field(
        description="The largest difference in units in the last place of the output's dtype, at the exact value."
    )
    mean_ulp: float = Field(description="The mean difference in units in the last place.")


class OutputErrors(ReportModel):
    """One output of a graph with rounded values, of eager and of compiled, element by element."""

    output: str = Field(description="The ATen node of the output.")
    dtype: str = Field(description="Its dtype by torch's name.")
    elements: int = Field(description="How many elements were compared. A complex element counts as two.")
    eager: ElementErrors | None = Field(default=None, description="Errors of eager PyTorch. Null if not comparable.")
    compiled: ElementErrors | None = Field(default=None, description="Errors of our kernels. Null if not comparable.")


class TraceEvent(ReportModel):
    """Something that torch's profiler recorded in one call. The profiler takes time of its own: `timing` has the times
    that a call takes without it."""

    model_config = example(
        contestant="compiled", name="K1 fused_sin_mul", track="thread 1", start_us=12.5, duration_us=3.1
    )

    contestant: str = Field(description='"eager", or the name of our graph whose kernels were called.')
    name: str = Field(description="What ran: an operator, or a kernel of ours with its number on the page.")
    track: str = Field(description="The thread of the host, or the stream of the GPU.")
    start_us: float = Field(description="Microseconds since the first event of the call.")
    duration_us: float = Field(description="Microseconds that it took, the events within it included.")


class TimingResult(ReportModel):
    """`contestants` are those whose results are right, or could not be checked."""

    method: str = Field(description="How times were taken, in sentences.")
    device: str = Field(description="The GPU's name, or cpu.")
    waited_share: float | None = Field(
        default=None,
        description="The share of its time in which the process waited for a CPU core.",
    )
    cold_l2: bool = Field(description="Whether the L2 cache was cleared before each sample.")
    contestants: list[Contestant] = Field(default=[], description="The times of each way to run the calls.")

    def of(self, name: str) -> Contestant | None:
        """The contestant of that name."""
        return next((one for one in self.contestants if one.name == name), None)

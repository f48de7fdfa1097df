"""What was measured: eager, ours and the peer, each with every sample. A wrong result has no speed: who gave one is no
contestant, and what is wrong is told instead."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, example


class Contestant(ReportModel):
    """Wall time of one way to run the same calls, in milliseconds; every sample is kept."""

    name: str = Field(description='Which way it is: "eager", "compiled" (ours), "peer", or another by its own name.')
    samples_ms: list[float] = Field(description="Every sample, in milliseconds, in the order in which they were taken.")
    median_ms: float = Field(description="The median of the samples, in milliseconds.")
    low_ms: float = Field(description="25th percentile.")
    high_ms: float = Field(description="75th percentile.")
    spread_ms: float | None = Field(
        default=None,
        description="By how much the median of another run may differ, 95 times in 100; null in older reports.",
    )
    ratio_factor: float | None = Field(
        default=None,
        description="By which factor the ratio of eager's median to this one may be another in another run, 95 times "
        "in 100: 1.04 is 4 %. They are interleaved, so this is not what the two spreads would give. Null where it is "
        "not known.",
    )
    compile_s: float | None = Field(
        default=None, description="Seconds of its first call, compiling included; null where it was not taken."
    )
    differs_from_eager: bool | None = Field(
        default=None,
        description="Whether that ratio is further from 1 than `ratio_factor`; null where it is not known.",
    )


CompilePhaseName = Literal["capture", "lowering", "scheduling", "code generation", "build"]


class CompilePhase(ReportModel):
    """What one phase of compiling took, of all graphs together: ours by the clock, the peer's by torch's counters."""

    model_config = example(phase="build", compiled_seconds=0.42, peer_seconds=3.1)

    phase: CompilePhaseName = Field(
        description="Capture is Dynamo and AOTAutograd; a build is what g++ or Triton makes of what was generated."
    )
    compiled_seconds: float | None = Field(default=None, description="Seconds of ours; null where none were taken.")
    peer_seconds: float | None = Field(default=None, description="Seconds of the peer; null where none were taken.")


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


class ElementErrors(ReportModel):
    """Errors of the elements of one output against float64, those left out that are NaN or infinite."""

    model_config = example(largest=2.4e-7, mean=1.9e-8, largest_ulp=1.6, mean_ulp=0.31)

    largest: float = Field(description="The largest difference of an element.")
    mean: float = Field(description="The mean of all differences.")
    largest_ulp: float = Field(
        description="The largest in units in the last place: of the output's dtype, at the exact value."
    )
    mean_ulp: float = Field(description="The mean in units in the last place.")


class OutputErrors(ReportModel):
    """One output of a graph with rounded values, of eager and of compiled, element by element."""

    output: str = Field(description="Its ATen node.")
    dtype: str = Field(description="Its dtype by torch's name.")
    elements: int = Field(description="How many elements were compared; a complex one is two.")
    eager: ElementErrors | None = Field(default=None, description="Errors of eager PyTorch; null where not comparable.")
    compiled: ElementErrors | None = Field(default=None, description="Errors of ours; null where not comparable.")


class TraceEvent(ReportModel):
    """Something that torch's profiler recorded in one call. The profiler takes time of its own: `timing` has the times
    that a call takes without it."""

    model_config = example(
        contestant="compiled", name="K1 fused_sin_mul", track="thread 1", start_us=12.5, duration_us=3.1
    )

    contestant: str = Field(description='"eager", or the graph of ours whose kernels were called.')
    name: str = Field(description="What ran: an operator, or a kernel of ours with its number on the page.")
    track: str = Field(description="The thread of the host, or the stream of the GPU.")
    start_us: float = Field(description="Microseconds since the first event of the call.")
    duration_us: float = Field(description="Microseconds that it took, those of events within it included.")


class TimingResult(ReportModel):
    """`contestants` are those whose results are right, or could not be checked."""

    method: str = Field(description="How times were taken, in sentences.")
    device: str = Field(description="The GPU's name, or cpu.")
    waited_share: float | None = Field(
        default=None,
        description="On a CPU: the share of its time for which the process waited for a core that others had.",
    )
    cold_l2: bool = Field(description="Whether the L2 cache was cleared before each sample.")
    contestants: list[Contestant] = Field(default=[], description="The times of each way to run the calls.")

    def of(self, name: str) -> Contestant | None:
        """The contestant of that name."""
        return next((one for one in self.contestants if one.name == name), None)

"""The whole: one report, its graphs, the stages that made it, and the sums that stand on top."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from compiler.report.capture import (
    Compilation,
    FxNode,
    GradientCheck,
    GraphBreak,
    Guard,
    Recompile,
    Rewrite,
    SavedTensor,
    Symbol,
)
from compiler.report.decisions import (
    Decision,
    FoldingDecision,
    LayoutDecision,
    PaddingDecision,
    Refusal,
    Round,
    WhatIf,
)
from compiler.report.kernels import Kernel
from compiler.report.loops import LoopNode, Removed
from compiler.report.machine_code import MachineCode
from compiler.report.memory import Buffer, Memory
from compiler.report.model import ReportModel, example
from compiler.report.observed import Observed
from compiler.report.peers import Peer
from compiler.report.replays import Replay
from compiler.report.sweep import NamedSize, SweepResult
from compiler.report.timings import CompilePhase, OutputErrors, TimingResult, TraceEvent, WrongResult
from compiler.report.traffic import Traffic

REPORT_VERSION = 5

StageStatus = Literal["done", "failed", "skipped"]
Status = Literal[
    "running", "ok", "wrong_result", "user_error", "timeout", "out_of_memory", "crashed", "cancelled", "dropped"
]


class Stage(ReportModel):
    """One step of the pipeline, its wall time, and how it ended."""

    model_config = example(name="schedule", ms=12.5, status="done")

    name: str = Field(description="The stage.")
    ms: float = Field(description="Its wall time, in milliseconds; of a sweep, what its sizes leave of it.")
    status: StageStatus = Field(description="How it ended.")
    message: str | None = Field(default=None, description="Why it failed or was skipped, in a sentence.")


class Error(ReportModel):
    """What stopped an exploration. `line` is the user's own line, counted from 1, where one is known."""

    model_config = example(
        type="RuntimeError", message="mat1 and mat2 shapes cannot be multiplied (4x8 and 9x16)", line=5, stage="capture"
    )

    type: str = Field(description="The type of the exception, or a name of ours such as TimeLimit.")
    message: str = Field(description="What went wrong, in its own words.")
    line: int | None = Field(default=None, description="The line of the snippet, counted from 1. Null if unknown.")
    stage: str | None = Field(default=None, description="The stage that it stopped.")
    hint: str | None = Field(default=None, description="What the reader can do about it.")
    traceback: str | None = Field(
        default=None,
        description="Frames of the snippet. If the defect is ours, frames of the compiler, without the snippet's text.",
    )


class Peak(ReportModel):
    """What a device does at most, by the record that the compiler has of it."""

    model_config = example(device="NVIDIA H200", gb_per_s=4370, gflop_per_s=66900, is_measured=True)

    device: str = Field(description="The device's name.")
    gb_per_s: float = Field(description="10^9 bytes a second that a large kernel reads and writes.")
    gflop_per_s: float = Field(description="10^9 float32 operations a second; a fused multiply-add is two.")
    half_product_gflop_per_s: float | None = Field(
        default=None, description="10^9 operations a second of the tensor cores on half types. Null if there are none."
    )
    is_measured: bool = Field(
        default=False,
        description="Whether `gb_per_s` was measured on such a device. Otherwise it is assumed. The number of "
        "operations is from the data sheet, or assumed for a CPU.",
    )


class Environment(ReportModel):
    """What a result depends on besides the snippet and the options."""

    python: str = Field(default="", description="Version of Python.")
    torch: str = Field(default="", description="Version of PyTorch.")
    triton: str | None = Field(default=None, description="Version of Triton. Null if Triton is not installed.")
    device: str = Field(default="", description="Where tensors were: cpu or cuda.")
    device_name: str = Field(default="", description="The device's name as its driver or the kernel gives it.")
    target: str = Field(default="", description="What Triton kernels were generated for, such as sm_90.")
    decides_for: str = Field(default="", description="The device whose model decided and predicted.")
    peaks: list[Peak] = Field(
        default=[],
        description="The device that ran. If the model of another device decided, that device follows.",
    )
    driver: str | None = Field(default=None, description="Version of the GPU's driver. Null on a CPU.")
    clocks: dict[str, Any] | None = Field(
        default=None, description="Clocks of the GPU in MHz, by name. Null if they were not read."
    )
    seed: int = Field(default=0, description="The seed that was set before the snippet ran.")
    commit: str | None = Field(default=None, description="Commit of the compiler's sources. Null if unknown.")
    compiler: str = Field(default="", description="Version of Fusionscope.")
    threads: int | None = Field(default=None, description="Threads that a CPU computed with. Null on a GPU.")


class Note(ReportModel):
    """Something that the reader must know about how the snippet was run (an input that was chosen, a device that was
    replaced, a stage that does not apply). `line` is a line of the snippet."""

    message: str = Field(description="The note, in sentences.")
    line: int | None = Field(default=None, description="The line of the snippet that it is about.")


class Graph(ReportModel):
    """One captured graph, from FX to kernels."""

    name: str = Field(description="Its name, such as graph_0, or graph_0_backward for its backward graph.")
    function: str | None = Field(default=None, description="The user's function that it is a part of.")
    phase: Literal["inference", "forward", "backward"] = Field(
        default="inference", description="Whether the graph only computes, or is one half of a training step."
    )
    partner: str | None = Field(default=None, description="The backward graph of a forward graph, or the reverse.")
    calls: int = Field(default=0, description="How often the snippet ran the graph.")
    device: str = Field(
        default="",
        description="Where the kernels run: cpu or cuda. A graph of CPU tensors runs on the CPU, also beside a GPU.",
    )
    fx: list[FxNode] = Field(default=[], description="The graph as Dynamo captured it.")
    aten: list[FxNode] = Field(
        default=[], description="The graph after AOTAutograd: functional and decomposed, and forward or backward alone."
    )
    guards: list[Guard] = Field(default=[], description="Conditions under which the graph may be used.")
    breaks: list[GraphBreak] = Field(default=[], description="The graph break that ended this graph, if one did.")
    recompiles: list[Recompile] = Field(default=[], description="Why this graph was compiled again, if it was.")
    symbols: list[Symbol] = Field(default=[], description="Sizes and numbers that the graph leaves open.")
    saved: list[SavedTensor] = Field(default=[], description="What the forward graph saved for this backward graph.")
    recomputed: list[str] = Field(
        default=[], description="Nodes of the forward graph that this backward graph computes again."
    )
    rewrites: list[Rewrite] = Field(default=[], description="What was replaced between `fx` and `aten`, or nearly was.")
    removed: list[Removed] = Field(default=[], description="Nodes that became no loop: there was nothing to do.")
    layouts: list[LayoutDecision] = Field(default=[], description="How tensors lie around convolutions.")
    foldings: list[FoldingDecision] = Field(default=[], description="What convolutions took over from later nodes.")
    paddings: list[PaddingDecision] = Field(default=[], description="Products whose sizes are not divisible by eight.")
    loops: list[LoopNode] = Field(default=[], description="The loop nodes before fusion.")
    decisions: list[Decision] = Field(
        default=[], description="The scheduler's decisions. A large graph lists the weightiest ones."
    )
    more_decisions: list[tuple[int, int, int, str]] = Field(
        default=[], description="Decisions without their details: both units, the round and the reason."
    )
    pairs_not_asked: int = Field(
        default=0,
        description="Pairs of kernels with as many iterations that were not asked about, because they are far apart.",
    )
    rounds: list[Round] = Field(default=[], description="What the scheduler did, round by round.")
    buffers: list[Buffer] = Field(default=[], description="The tensors of the graph, and what becomes of each.")
    memory: Memory | None = Field(default=None, description="The memory that the buffers take.")
    traffic: Traffic | None = Field(default=None, description="The bytes that the graph moves.")
    kernels: list[Kernel] = Field(default=[], description="What is launched, in order.")
    refusals: list[Refusal] = Field(
        default=[], description="The pairs of kernels that were not fused. Those with most bytes at stake are first."
    )
    predicted_us: float | None = Field(
        default=None, description="Predicted time of the generated kernels in a row, with the gaps between them."
    )
    call_us: float | None = Field(
        default=None, description="Microseconds of one call of the graph. It was measured beside each kernel alone."
    )
    disturbed: str | None = Field(
        default=None,
        description="Why the measured times of the kernels are not reliable: they do not add up to the time of "
        "the call. The kernels then have no bandwidth.",
    )
    errors: list[OutputErrors] = Field(
        default=[],
        description="Errors of the outputs against float64, for one seed, on the first inputs.",
    )
    wrapper: str = Field(default="", description="The function that launches the kernels, as Python.")
    replay: Replay | None = Field(default=None, description="Whether the launches are replayed as one CUDA graph.")
    eager_kernels: int | None = Field(default=None, description="Launches of eager PyTorch for the same graph.")
    eager_bytes: int | None = Field(default=None, description="Bytes that eager PyTorch moves for the same graph.")
    floor_bytes: int | None = Field(default=None, description="Bytes that any compiler must move.")


class Summary(ReportModel):
    """The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. A
    wrong result has no speed: if the report's `wrong_results` name "compiled", `compiled_ms` and `speedup` are null,
    and if they name "peer", `peer_ms` is. An error is null if an output cannot be compared, such as NaN."""

    eager_kernels: int | None = Field(default=None, description="Launches of eager PyTorch.")
    kernels: int | None = Field(default=None, description="Our launches, library calls included.")
    peer_kernels: int | None = Field(
        default=None, description="Launches of TorchInductor. Null if they belong to other calls."
    )
    eager_bytes: int | None = Field(default=None, description="Bytes that eager moves.")
    unfused_bytes: int | None = Field(default=None, description="Bytes with one kernel for each node.")
    bytes: int | None = Field(default=None, description="Bytes that our kernels and library calls move.")
    floor_bytes: int | None = Field(default=None, description="Bytes that any compiler must move.")
    graph_breaks: int = Field(default=0, description="Distinct graph breaks.")
    recompiles: int = Field(default=0, description="Compilations that were made because a guard failed.")
    eager_ms: float | None = Field(default=None, description="Milliseconds of eager, the median.")
    compiled_ms: float | None = Field(default=None, description="Milliseconds of compiled, the median.")
    peer_ms: float | None = Field(default=None, description="Milliseconds of TorchInductor, the median.")
    speedup: float | None = Field(default=None, description="How many times as fast compiled is as eager.")
    eager_error: float | None = Field(default=None, description="The largest relative error of eager against float64.")
    compiled_error: float | None = Field(
        default=None, description="The largest relative error of compiled against float64."
    )
    allowed_error: float | None = Field(
        default=None,
        description="What rounding explains of the output with that error. It is large where terms cancel.",
    )
    verdict: str = Field(default="", description="The answer in a sentence or two. Empty until calls were timed.")


class Report(ReportModel):
    """Everything that came of one exploration. `status` is "running" until the last stage has ended, and "wrong_result"
    where all stages ended and a compiled result is wrong, here or at a size of the sweep. The service sets "cancelled"
    where somebody asked for the end, and "dropped" where nobody waited for it any longer."""

    version: int = Field(default=REPORT_VERSION, description="Version of this format.")
    id: str = Field(
        default="", description="Id of the exploration: a hash of the snippet, the options, the build and the device."
    )
    status: Status = Field(default="running", description="How the exploration ended, or that it is running.")
    source: str = Field(description="The snippet as it was given.")
    options: dict[str, Any] = Field(
        default={}, description="The options that were given, by name. Options that are unset are left out."
    )
    based_on: str | None = Field(default=None, description="Id of the exploration that this one is compared with.")
    what_if: list[WhatIf] = Field(default=[], description="The outcome of each option that asks for other decisions.")
    summary: Summary = Field(default=Summary(), description="The figures of all graphs together.")
    environment: Environment = Field(default=Environment(), description="Versions, device and seed.")
    stages: list[Stage] = Field(default=[], description="The stages that have ended, in order.")
    notes: list[Note] = Field(default=[], description="What the reader must know about how the snippet was run.")
    graphs: list[Graph] = Field(default=[], description="Every graph that was captured, in order.")
    breaks: list[GraphBreak] = Field(default=[], description="Every distinct graph break, with or without a graph.")
    compilations: list[Compilation] = Field(default=[], description="What Dynamo did, one entry for each compilation.")
    wrong_results: list[WrongResult] = Field(default=[], description="Outputs that rounding does not explain.")
    peer: Peer | None = Field(
        default=None, description="What TorchInductor made of the same graphs. Null if it was not asked."
    )
    compile_phases: list[CompilePhase] = Field(
        default=[], description="Seconds that each phase of compiling took, ours and the peer's, in order."
    )
    timing: TimingResult | None = Field(
        default=None, description="Times of eager and compiled calls. Null if none were taken."
    )
    trace: list[TraceEvent] = Field(
        default=[], description="One call of each, as torch's profiler recorded it, if asked for."
    )
    sizes: list[NamedSize] = Field(default=[], description="Sizes that a sweep of this snippet can name.")
    sweep: SweepResult | None = Field(default=None, description="The snippet at other sizes, if asked for.")
    machine_code: MachineCode | None = Field(
        default=None, description="Of an exploration whose source is a kernel: what that was compiled to."
    )
    gradients: list[GradientCheck] = Field(default=[], description="Training, checked from end to end.")
    output: str = Field(default="", description="What the snippet printed, cut at a stated length.")
    error: Error | None = Field(default=None, description="What stopped it. Null if nothing did.")
    observed: Observed | None = Field(
        default=None, description="What the service saw of it from outside. Null if it did not run it."
    )

    @property
    def has_wrong_result(self) -> bool:
        """Whether a compiled result is wrong, of the snippet as it is written or at a size of its sweep."""
        sizes = self.sweep.sizes if self.sweep is not None else []
        wrong = [*self.wrong_results, *(one for size in sizes for one in size.wrong_results)]
        return any(one.contestant == "compiled" for one in wrong)

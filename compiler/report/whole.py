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
from compiler.report.decisions import Decision, FoldingDecision, LayoutDecision, PaddingDecision, Round, WhatIf
from compiler.report.kernels import Kernel
from compiler.report.loops import LoopNode, Removed
from compiler.report.memory import Buffer, Memory
from compiler.report.model import ReportModel
from compiler.report.observed import Observed
from compiler.report.replays import Replay
from compiler.report.sweep import NamedSize, SweepResult
from compiler.report.timings import Peer, TimingResult, WrongResult
from compiler.report.traffic import Traffic

REPORT_VERSION = 3

StageStatus = Literal["done", "failed", "skipped"]
Status = Literal[
    "running", "ok", "wrong_result", "user_error", "timeout", "out_of_memory", "crashed", "cancelled", "dropped"
]


class Stage(ReportModel):
    """One step of the pipeline, its wall time, and how it ended."""

    name: str
    ms: float
    status: StageStatus
    message: str | None = None


class Error(ReportModel):
    """What stopped an exploration. `line` is the user's own line, counted from 1, where one is known."""

    type: str
    message: str
    line: int | None = None
    stage: str | None = None
    hint: str | None = Field(default=None, description="What the reader can do about it.")
    traceback: str | None = None


class Environment(ReportModel):
    python: str = ""
    torch: str = ""
    triton: str | None = None
    device: str = ""
    device_name: str = ""
    target: str = ""
    decides_for: str = Field(default="", description="The device whose model decided and predicted.")
    driver: str | None = None
    clocks: dict[str, Any] | None = None
    seed: int = 0
    commit: str | None = None
    compiler: str = ""
    threads: int | None = None


class Note(ReportModel):
    """Something that the reader must know about how the snippet was run (an input that was chosen, a device that was
    replaced, a stage that does not apply). `line` is a line of the snippet."""

    message: str
    line: int | None = None


class Graph(ReportModel):
    """One captured graph, from FX to kernels."""

    name: str
    function: str | None = None
    phase: Literal["inference", "forward", "backward"] = "inference"
    partner: str | None = Field(default=None, description="The backward graph of a forward graph, and the other way.")
    calls: int = 0
    fx: list[FxNode] = []
    aten: list[FxNode] = []
    guards: list[Guard] = []
    breaks: list[GraphBreak] = Field(default=[], description="The graph break that ended this graph, if one did.")
    recompiles: list[Recompile] = Field(default=[], description="Why this graph was compiled again, if it was.")
    symbols: list[Symbol] = Field(default=[], description="What this graph leaves open: it serves every value.")
    saved: list[SavedTensor] = Field(default=[], description="Of a backward graph: what the forward saved for it.")
    recomputed: list[str] = Field(
        default=[], description="Of a backward graph: nodes of the forward graph that it computes again, not saved."
    )
    rewrites: list[Rewrite] = Field(default=[], description="What was replaced between `fx` and `aten`, or nearly was.")
    removed: list[Removed] = Field(default=[], description="What became no loop, since there was nothing to do.")
    layouts: list[LayoutDecision] = Field(default=[], description="What was decided of convolutions, before `loops`.")
    foldings: list[FoldingDecision] = Field(default=[], description="What convolutions took of what follows them.")
    paddings: list[PaddingDecision] = Field(default=[], description="Products of sizes that eight does not divide.")
    loops: list[LoopNode] = []
    decisions: list[Decision] = Field(
        default=[], description="In a large graph only the weightiest: see `more_decisions`."
    )
    more_decisions: list[tuple[int, int, int, str]] = Field(
        default=[], description="Those that are not told at length: both units, the round, the reason."
    )
    pairs_not_asked: int = Field(
        default=0,
        description="Pairs of kernels that run over as many iterations and leave no decision, being far apart.",
    )
    rounds: list[Round] = []
    buffers: list[Buffer] = []
    memory: Memory | None = None
    traffic: Traffic | None = None
    kernels: list[Kernel] = []
    predicted_us: float | None = Field(
        default=None, description="The generated kernels one after another; what library calls take is not foreseen."
    )
    call_us: float | None = Field(
        default=None, description="One call of the graph with these kernels, measured beside each kernel alone."
    )
    disturbed: str | None = Field(
        default=None,
        description="Why the kernels' measured times are not to be relied on: they do not add up to the call's. They "
        "have no bandwidth then.",
    )
    wrapper: str = ""
    replay: Replay | None = Field(default=None, description="Whether the launches are replayed as one CUDA graph.")
    eager_kernels: int | None = None
    eager_bytes: int | None = None
    floor_bytes: int | None = None


class Summary(ReportModel):
    """The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. A
    wrong result has no speed: where the report's `wrong_results` name "compiled", `compiled_ms` and `speedup` are null,
    and where they name "peer", `peer_ms` is. An error is null where one of the outputs cannot be compared, as NaN."""

    eager_kernels: int | None = None
    kernels: int | None = None
    peer_kernels: int | None = None
    eager_bytes: int | None = None
    unfused_bytes: int | None = Field(default=None, description="One kernel for each loop node and library call.")
    bytes: int | None = None
    floor_bytes: int | None = None
    graph_breaks: int = 0
    recompiles: int = 0
    eager_ms: float | None = None
    compiled_ms: float | None = None
    peer_ms: float | None = None
    speedup: float | None = None
    eager_error: float | None = None
    compiled_error: float | None = None
    verdict: str = ""


class Report(ReportModel):
    """Everything that came of one exploration. `status` is "running" until the last stage has ended, and "wrong_result"
    where all stages ended and a compiled result is wrong, here or at a size of the sweep. The service sets "cancelled"
    where somebody asked for the end, and "dropped" where nobody waited for it any longer."""

    version: int = REPORT_VERSION
    id: str = ""
    status: Status = "running"
    source: str
    options: dict[str, Any] = {}
    based_on: str | None = Field(default=None, description="Id of the exploration that this one is compared with.")
    what_if: list[WhatIf] = Field(default=[], description="What came of each option that asks for other decisions.")
    summary: Summary = Summary()
    environment: Environment = Environment()
    stages: list[Stage] = []
    notes: list[Note] = []
    graphs: list[Graph] = []
    breaks: list[GraphBreak] = Field(default=[], description="Every distinct graph break, with or without a graph.")
    compilations: list[Compilation] = Field(default=[], description="What Dynamo did, one entry a compilation.")
    wrong_results: list[WrongResult] = Field(default=[], description="Outputs that rounding does not explain.")
    peer: Peer | None = None
    timing: TimingResult | None = None
    sizes: list[NamedSize] = Field(default=[], description="Sizes that a sweep of this snippet can name.")
    sweep: SweepResult | None = Field(default=None, description="The snippet at other sizes, where that was asked for.")
    gradients: list[GradientCheck] = Field(default=[], description="Training, checked from end to end.")
    output: str = Field(default="", description="What the snippet printed, cut at a stated length.")
    error: Error | None = None
    observed: Observed | None = Field(
        default=None, description="What the service saw of it from outside; null of one that it did not run."
    )

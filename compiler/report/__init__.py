"""The typed result of an exploration: the contract that the page, the API and the command line read.

One group of models a stage. Plain JSON only: no torch object ever enters a report. Sizes are bytes, times are
milliseconds (`_ms`) or microseconds (`_us`), rates are 10^9 bytes a second. A figure that was predicted by the cost
model is named `predicted_*` or stands in a decision's `score`; a figure that was measured is named `measured_*` or
stands under `timing`. They never share a field.

Node ids: an FX node is named as in its graph (`mul_1`); a loop node by the buffer that it writes (`buf3`); a kernel by
its function's name. Within one graph, these three name spaces do not overlap.
"""

# ruff: noqa: F401  (what is imported here is the contract)

from __future__ import annotations

from compiler.report.capture import (
    Artefact,
    Compilation,
    FxNode,
    GradientCheck,
    GraphBreak,
    Guard,
    Recompile,
    Rewrite,
    SavedTensor,
    Subject,
    Symbol,
)
from compiler.report.decisions import (
    Decision,
    FoldingDecision,
    IndexTerm,
    LayoutConversion,
    LayoutDecision,
    PaddingCopy,
    PaddingDecision,
    Refusal,
    Round,
    Score,
    Side,
    WhatIf,
)
from compiler.report.kernels import (
    Kernel,
    KernelArtifact,
    KernelLevels,
    KernelLine,
    KernelStep,
    TensorLoads,
    TileDescriptor,
    UserArgument,
    UserKernel,
)
from compiler.report.loops import Access, LoopNode, Removed
from compiler.report.machine_code import (
    CodeLevel,
    MachineCode,
    MemoryAccess,
    Occupancy,
    OccupancyLimit,
    Pass,
    VectorLoop,
    VectorRemark,
)
from compiler.report.memory import Buffer, Memory, Reuse
from compiler.report.model import ReportModel, SizeText
from compiler.report.observed import GpuWhileTimed, Observed
from compiler.report.peers import (
    AlignedKernels,
    CallErrors,
    ContestantErrors,
    ContestantOutcome,
    Peer,
    PeerBuffer,
    PeerGraph,
    PeerKernel,
    PeerLaunch,
    PeerRefusal,
)
from compiler.report.replays import CallTimes, Replay, ReplayInput
from compiler.report.sweep import Flip, NamedSize, Outcome, SweepResult, SweptPair, SweptSize
from compiler.report.timings import (
    CompilePhase,
    CompilePhaseName,
    Contestant,
    ElementErrors,
    OutputErrors,
    TimingResult,
    TraceEvent,
    WrongResult,
)
from compiler.report.traffic import EdgeFate, EdgeTraffic, ExecutionTraffic, LaunchTraffic, TensorTraffic, Traffic
from compiler.report.whole import (
    REPORT_VERSION,
    Environment,
    Error,
    Graph,
    Note,
    Peak,
    Report,
    Stage,
    StageStatus,
    Status,
    Summary,
)

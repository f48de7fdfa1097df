"""The typed result of an exploration: the contract that the page, the API and the command line read.

One group of models a stage. Plain JSON only: no torch object ever enters a report. Sizes are bytes, times are
milliseconds (`_ms`) or microseconds (`_us`), rates are 10^9 bytes a second. A figure that was predicted by the cost
model is named `predicted_*` or stands in a decision's `score`; a figure that was measured is named `measured_*` or
stands under `timing`. They never share a field.

Node ids: an FX node is named as in its graph (`mul_1`); a loop node by the buffer that it writes (`buf3`); a kernel by
its function's name. Within one graph, these three name spaces do not overlap.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

REPORT_VERSION = 2

StageStatus = Literal["done", "failed", "skipped"]


class ReportModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


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


#: A size: a number, or a formula of symbols (`64 * s0`) where it differs from call to call.
SizeText = int | str


class FxNode(ReportModel):
    """A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet."""

    name: str
    op: str
    target: str
    args: list[str] = []
    text: str = ""
    shape: list[SizeText] | None = None
    stride: list[SizeText] | None = None
    dtype: str | None = None
    bytes: int | None = None
    lines: list[int] = []
    module: str | None = None
    dead: bool = False


class Guard(ReportModel):
    """A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms."""

    kind: str
    name: str
    expression: str
    lines: list[int] = []
    subject: str = Field(default="", description="What it is about, as the snippet writes it: `n`, `x.size(0)`.")
    fails_when: str = Field(default="", description="The change of the input that fails it, such as `n` other than 6.")


class GraphBreak(ReportModel):
    """Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line."""

    reason: str = Field(description="Dynamo's explanation, its first sentence.")
    line: int | None = None
    kind: str | None = Field(default=None, description="Dynamo's own name of it.")
    hint: str | None = Field(default=None, description="Dynamo's own hints.")
    category: str = Field(default="other", description="Id of the kind of break, as in docs/graph_breaks.md.")
    title: str = Field(default="", description="The kind of break in words.")
    remedy: str = Field(default="", description="What would keep the graph whole, in one sentence.")
    url: str | None = Field(default=None, description="The page of PyTorch's documentation on it.")
    before: list[str] = Field(default=[], description="The graphs that it ended.")
    after: list[str] = Field(default=[], description="The graphs that ran next, where tracing was taken up again.")
    count: int = Field(default=1, description="How often tracing met it.")


class Symbol(ReportModel):
    """A size or a number that a graph leaves open, so that one graph serves every value in `range`."""

    name: str
    source: str = Field(description="What it is, as the snippet writes it: `n`, `x.size(0)`.")
    value: str | None = Field(default=None, description="Its value in the call that was traced.")
    range: str = ""
    line: int | None = None


class Recompile(ReportModel):
    """A compilation made because no earlier code of the function fitted the call: the guard that failed, and how."""

    function: str
    reason: str
    line: int | None = None
    guard: str | None = Field(default=None, description="The condition that failed, of the newest code there was.")
    subject: str | None = Field(default=None, description="What it was about, as the snippet writes it.")
    expected: str | None = None
    actual: str | None = None
    graph: str | None = Field(default=None, description="The graph that was made for the new value.")
    symbolic: list[str] = Field(default=[], description="What the new graph leaves open and the earlier one did not.")


class Artefact(ReportModel):
    """One text of torch's own trace, as its log prints it; `chars` is its length before it was cut."""

    name: str
    title: str
    text: str
    chars: int


class Compilation(ReportModel):
    """One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after."""

    id: str
    function: str | None = None
    line: int | None = None
    graphs: list[str] = []
    bytecode_before: str = ""
    bytecode_after: str = ""
    artefacts: list[Artefact] = []


class SavedTensor(ReportModel):
    """A tensor that the forward graph keeps for the backward graph."""

    node: str = Field(description="The node of the forward graph that made it.")
    input: str = Field(description="The input of the backward graph that it is.")
    kind: Literal["input", "output", "activation"] = Field(
        description="An input or an output of the forward graph lives anyway; an activation is kept for this alone."
    )
    shape: list[SizeText] = []
    dtype: str = ""
    bytes: int = 0
    lines: list[int] = []


class GradientCheck(ReportModel):
    """One result or gradient of a whole trained function: errors of eager and compiled against it in float64."""

    entry: str
    name: str = Field(description='"the result", or "the gradient of x".')
    eager_error: float
    compiled_error: float
    is_correct: bool = Field(description="Whether rounding explains the error: no worse than eager, or within dtype.")


class Rewrite(ReportModel):
    """Something written by hand that a fused operator of torch does better: replaced, or kept and why."""

    what: Literal["attention"] = "attention"
    verdict: Literal["replaced", "kept"]
    reason: str = Field(description="Id of the reason, as in docs/rewrites.md.")
    message: str = Field(description="The reason in a sentence.")
    detail: str = Field(default="", description="What exactly it was found in, in this graph.")
    remedy: str = Field(default="", description="What the author can do, where there is something.")
    nodes: list[str] = Field(default=[], description="The nodes of `fx` that were replaced.")
    lines: list[int] = []


class Access(ReportModel):
    """A read or a write of one buffer: `index` is the element offset as a formula of the loop variables."""

    buffer: str
    index: str
    bytes: int


class LoopNode(ReportModel):
    """A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line."""

    name: str
    kind: Literal["pointwise", "reduction", "scan", "scatter", "extern", "view"]
    sizes: list[SizeText] = []
    reduction_sizes: list[SizeText] = []
    dtype: str | None = None
    shape: list[SizeText] | None = None
    body: list[str] = []
    reads: list[Access] = []
    writes: list[Access] = []
    origins: list[str] = Field(default=[], description="FX nodes of `aten` that it came from.")
    lines: list[int] = []
    dead: bool = False
    fallback: bool = Field(default=False, description="True for an ATen call that we have no lowering for.")


class Score(ReportModel):
    """What the cost model expects of a fusion. Both times are predictions, in microseconds.

    Of a refusal for which no kernel of both could be made, `bytes_saved` is the most that one could save, and there is
    no `fused_us`; where a library call takes part, there is no prediction of either time."""

    category: str
    bytes_saved: int
    distance: int
    fused_us: float | None = None
    unfused_us: float | None = None


class Removed(ReportModel):
    """A node that nothing had to be done for. It is one of `fx` where it is "dead", of `aten` otherwise."""

    kind: Literal["dead", "common_subexpression", "constant", "view", "cast", "copy"]
    node: str
    because: str
    lines: list[int] = []


class IndexTerm(ReportModel):
    """One term of an index expression with its sign: `512 * x0`, ` + x1`. `differs` marks what the other side of the
    decision does not have."""

    text: str
    differs: bool = False


class Side(ReportModel):
    """One side of a decision as it was when it was asked about: a group of nodes, or a library call."""

    unit: int = Field(description="Number of the unit; see `rounds`.")
    space: str = Field(default="", description="Its loops, those of a reduction after the bar; empty: a library call.")
    iterations: SizeText | None = None
    does: Literal["writes", "reads", "touches"] = "touches"
    index: list[IndexTerm] = Field(default=[], description="The element of the shared buffer, by its loops.")


class Decision(ReportModel):
    """One pair that the scheduler looked at: what it decided, and why, with numbers."""

    a: str
    b: str
    round: int
    kind: Literal["vertical", "horizontal"]
    verdict: Literal["fused", "refused"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    numbers: dict[str, Any] = {}
    score: Score | None = None
    lines: list[int] = []
    shared: str | None = Field(default=None, description="The buffer that the verdict is about.")
    shared_bytes: int | None = None
    sides: list[Side] = Field(default=[], description="That of `a`, then that of `b`.")
    same_loops: bool = Field(default=False, description="Whether both index expressions are over the same loops.")
    change: str = Field(default="", description="Of a fusion: the loops that were given up, by those that were kept.")
    makes: int | None = Field(default=None, description="Of a fusion of two units: the number of what they became.")
    would_fuse_if: str = Field(default="", description="A change under which the rules do fuse the two: it was tried.")


class LayoutConversion(ReportModel):
    """A copy into other strides at the edge of a region: `buffer` is made of `source` for `reader`. `bytes` are read
    and written by a kernel of its own; what is fused into the loop that makes `source` moves fewer."""

    buffer: str
    source: str
    what: Literal["image", "filter", "argument", "output"]
    reader: str
    bytes: int


class LayoutDecision(ReportModel):
    """How tensors lie around convolutions that hang together: channels-last, or as eager has them, and why."""

    verdict: Literal["channels_last", "kept"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    convolutions: list[str] = Field(default=[], description="Nodes of `aten`.")
    numbers: dict[str, Any] = {}
    predicted_kept_us: float | None = Field(
        default=None, description="Tensors as in eager: the library's calls, and the passes that folding would spare."
    )
    predicted_moved_us: float | None = Field(
        default=None, description="Channels-last: the library's calls, conversions, and filters that are folded."
    )
    buffers: list[str] = Field(default=[], description="Those that are channels-last, or would be if it paid.")
    conversions: list[LayoutConversion] = []
    lines: list[int] = []


class FoldingDecision(ReportModel):
    """Whether a convolution takes the products and sums of each channel, and the ReLU, that follow it."""

    verdict: Literal["folded", "kept"]
    reason: str = Field(description="Id of the reason, as in GET /api/v1/reasons.")
    message: str
    nodes: list[str] = Field(default=[], description="Of `aten`: the convolution first, the ReLU last.")
    predicted_saved_us: float = Field(description="The pass over the result that is spared.")
    predicted_filter_us: float = Field(description="What it takes to compute the filter in each call.")
    lines: list[int] = []


class Round(ReportModel):
    """One round of the scheduler: what it asked, and the fusion that it took as the best; at the end of all, those of
    small kernels that share launches.

    Units are numbered: the nodes of `loops` that are not dead, in order from 0, then whatever a fusion makes, in order.
    So the fusions are all it takes to tell the groups after any round (`compiler.rounds.units_after` does)."""

    number: int
    fused: list[tuple[int, int, int]] = Field(
        default=[], description="The two units, and the number of what they became."
    )
    refused: int = 0
    units: int = Field(default=0, description="How many units there are after it.")


class Buffer(ReportModel):
    """A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs)."""

    name: str
    shape: list[SizeText]
    stride: list[SizeText] = []
    dtype: str
    bytes: int
    first: int | None = None
    last: int | None = None
    fate: Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"]
    takes_over: str | None = Field(default=None, description="The buffer whose memory it gets.")
    note: str | None = None


class Reuse(ReportModel):
    """A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it
    writes the other."""

    buffer: str
    takes_over: str
    bytes: int
    in_place: bool


class Memory(ReportModel):
    """What the buffers of a graph take, its inputs not counted, in bytes.

    A peak is the most that is alive at one time. `unfused_*` is what a compiler that reuses memory but does not fuse
    would need: one kernel for each node, in the order in which they were written."""

    peak_bytes: int
    unordered_peak_bytes: int = Field(description="Our kernels in the order in which they were written.")
    without_reuse_bytes: int = Field(description="Every buffer of our kernels in memory of its own, none let go.")
    reuses: list[Reuse] = []
    unfused_peak_bytes: int
    unfused_without_reuse_bytes: int
    unfused_reuses: list[Reuse] = []
    live_bytes: list[int] = Field(default=[], description="What is alive while each kernel runs, and after the last.")
    unfused_live_bytes: list[int] = Field(default=[], description="The same without fusion, node by node.")
    unfused_buffers: list[Buffer] = Field(
        default=[], description="The plan without fusion; `first` and `last` are positions among the nodes not dead."
    )


class TensorTraffic(ReportModel):
    """What one launch moves of one tensor: each element that it needs is read once and written once."""

    tensor: str
    read_bytes: int = 0
    written_bytes: int = 0


class LaunchTraffic(ReportModel):
    """What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that
    eager made the call for."""

    name: str
    node: str | None = None
    bytes: int
    tensors: list[TensorTraffic] = []
    lines: list[int] = []


class ExecutionTraffic(ReportModel):
    """What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`."""

    bytes: int
    launches: list[LaunchTraffic] = []


EdgeFate = Literal["memory", "register", "read_saved", "recomputed", "shared_read"]


class EdgeTraffic(ReportModel):
    """One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that.

    Without fusion it costs `written_bytes` (once for all its readers; 0 where it is an input of the graph) and
    `read_bytes`. What became of it: "memory" it is written and read; "register" neither, the value stays in a register;
    "read_saved" it is written for others, this reader has the value; "recomputed" this reader computes it for itself;
    "shared_read" its kernel reads less of it for this reader, or nothing: another node of the kernel reads it anyway,
    or not all of it is needed."""

    tensor: str
    producer: str | None = Field(description="The loop node; None for an input or a constant.")
    consumer: str
    written_bytes: int
    read_bytes: int
    saved_read_bytes: int = Field(description="Of `read_bytes`, what the reader's kernel does not read for it.")
    fate: EdgeFate


class Traffic(ReportModel):
    """The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to
    run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels).

    Each is the sum of its launches, and a launch the sum of its tensors; `fused` is `unfused` less what is saved and
    more what is read besides. The floor is what any compiler must move: each
    element of an input that is used read once, each output written once."""

    eager: ExecutionTraffic | None = Field(
        default=None, description="Missing where the graph cannot be run on shapes alone."
    )
    unfused: ExecutionTraffic | None = None
    fused: ExecutionTraffic | None = None
    floor_bytes: int | None = None
    floor: list[TensorTraffic] = []
    edges: list[EdgeTraffic] = []
    saved_written_bytes: int = Field(default=0, description="Of tensors that fusion keeps out of memory.")
    saved_read_bytes: int = Field(default=0, description="Of `edges` whose reader needs no read of its own.")
    more_read_bytes: int = Field(
        default=0, description="What kernels read that their nodes alone would not: to compute values again."
    )


class KernelLine(ReportModel):
    """Where one line of a kernel comes from: `line` counts from 1 in the kernel's source."""

    line: int
    nodes: list[str] = []
    user_lines: list[int] = []


class KernelArtifact(ReportModel):
    """The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel."""

    language: Literal["triton", "cpp", "ptx"]
    target: str
    source: str
    lines: list[KernelLine] = []
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    config: dict[str, Any] = {}
    check: str | None = Field(default=None, description="How this rendering was checked, and with what result.")
    max_error: float | None = None


class TensorLoads(ReportModel):
    """What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of
    `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them."""

    tensor: str
    memory_bytes: int
    loaded_bytes: int


class KernelLevels(ReportModel):
    """Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured.

    Shared memory, registers and spills are the assembler's to say: see the kernel, or its `also` for the target."""

    target: str
    plan: Literal["pointwise", "persistent", "looped", "split", "team", "batch", "product"]
    programs: int
    threads: int = Field(description="Of one program.")
    tile: dict[str, int] = Field(default={}, description="Elements of one program along each axis; of one step in r.")
    passes: int = Field(description="Over the reduction loops; 0 without any, 1 where all of r stays in registers.")
    loads: list[TensorLoads] = []
    missed_bytes: int = Field(
        default=0, description="Predicted: of what later passes load again, what the cache holds no more."
    )
    kept: list[str] = Field(default=[], description="Values of nodes that stay in registers and reach no memory.")
    combined: list[str] = Field(
        default=[], description="Values that the threads of a program combine, through shuffles and shared memory."
    )


class Kernel(ReportModel):
    """What is launched: one generated function or one library call.

    `reads`, `writes` are buffer names; `bytes` counts each read once and each written once. `registers` and `spills`
    (bytes) are per thread, `shared_bytes` per program; they come from the assembler; `predicted_us` from the cost
    model; `measured_us` from a device.
    """

    name: str
    kind: Literal["triton", "cpp", "extern"]
    nodes: list[str]
    origins: list[str] = []
    source: str
    language: Literal["python", "cpp"] = "python"
    lines: list[KernelLine] = []
    user_lines: list[int] = []
    reads: list[str] = []
    writes: list[str] = []
    bytes: int = 0
    flops: int | None = None
    grid: list[int] | None = None
    config: dict[str, Any] = {}
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    predicted_us: float | None = None
    measured_us: float | None = None
    gb_per_s: float | None = None
    percent_of_peak: float | None = None
    levels: KernelLevels | None = Field(default=None, description="Of a generated kernel, where the target is a GPU.")
    also: list[KernelArtifact] = Field(default=[], description="The same kernel for other targets.")


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
    wrapper: str = ""
    eager_kernels: int | None = None
    eager_bytes: int | None = None
    floor_bytes: int | None = None


class NamedSize(ReportModel):
    """A size of the snippet that a sweep can name, with its value as written."""

    name: str
    value: int
    lines: list[int] = []


class Flip(ReportModel):
    """Something that the compiler does otherwise than at the size before."""

    kind: Literal["verdict", "kernels", "choice"]
    graph: str | None = Field(default=None, description="The graph that it is in; of a count: all of them.")
    about: str = Field(description='The pair, as "a + b"; the kernel whose plan it is; or "kernels".')
    before: str
    after: str


class SweptSize(ReportModel):
    """What the snippet becomes at one size. A figure is null where it is not known."""

    value: int
    error: str | None = Field(default=None, description="What went wrong at this size, in a sentence.")
    launches: int | None = Field(default=None, description="Generated kernels and library calls.")
    kernels: int | None = Field(default=None, description="The generated ones among them.")
    bytes: int | None = None
    floor_bytes: int | None = None
    predicted_us: float | None = Field(default=None, description="The generated kernels, one after another.")
    measured_us: float | None = Field(default=None, description="The generated kernels together, each on its own.")
    eager_ms: float | None = None
    compiled_ms: float | None = None
    plans: dict[str, str] = Field(
        default={},
        description='How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split" or "team".',
    )
    flips: list[Flip] = []
    more_flips: int = Field(default=0, description="How many flips are not listed.")


class Outcome(ReportModel):
    """What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it
    by the fusion of others."""

    verdict: Literal["fused", "refused", "never considered"]
    reason: str | None = None
    together: bool


class SweptPair(ReportModel):
    """A pair of nodes, matched by name, with its outcome at each size in order; null where there is no such pair."""

    graph: str
    a: str
    b: str
    outcomes: list[Outcome | None]
    flips: bool


class SweepResult(ReportModel):
    """One snippet at several sizes, in ascending order; each size is compared with the one before it that has kernels.

    `verdict` says in a sentence where something flips; `message` what the reader must know besides."""

    name: str
    sizes: list[SweptSize] = []
    pairs: list[SweptPair] = Field(default=[], description="Those that flip first; see `more_pairs`.")
    more_pairs: int = Field(default=0, description="How many pairs are not listed.")
    verdict: str = ""
    message: str | None = None


class Contestant(ReportModel):
    """Wall time of one way to run the same calls, in milliseconds; every sample is kept."""

    name: Literal["eager", "compiled", "peer"]
    samples_ms: list[float]
    median_ms: float
    low_ms: float = Field(description="25th percentile.")
    high_ms: float = Field(description="75th percentile.")
    compile_s: float | None = None


class TimingResult(ReportModel):
    method: str
    device: str
    cold_l2: bool
    contestants: list[Contestant] = []


class Peer(ReportModel):
    """What TorchInductor made of the same graphs."""

    name: str = "TorchInductor"
    kernels: list[Kernel] = []
    message: str | None = None


class WhatIf(ReportModel):
    """One thing that an option asked to be otherwise, and what came of it.

    A fusion that was forced is "done", or "refused" with the reason of the scheduler or of what comes before it; one
    that was forbidden is "done", or had "no effect" as the two would not have been fused anyway, for that reason."""

    option: Literal["force", "forbid", "rules_off", "largest_group", "device_model"]
    asked: list[str] = Field(description="The two nodes, the rule, the number or the device, as they were asked for.")
    outcome: Literal["done", "refused", "no effect", "unknown name"]
    graph: str | None = Field(default=None, description="The graph that has the two nodes.")
    reason: str | None = Field(default=None, description="Id of the reason, as in GET /api/v1/reasons.")
    message: str


class Summary(ReportModel):
    """The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms."""

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
    """Everything that came of one exploration. `status` is "running" until the last stage has ended."""

    version: int = REPORT_VERSION
    id: str = ""
    status: Literal["running", "ok", "user_error", "timeout", "out_of_memory", "crashed", "cancelled"] = "running"
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
    peer: Peer | None = None
    timing: TimingResult | None = None
    sizes: list[NamedSize] = Field(default=[], description="Sizes that a sweep of this snippet can name.")
    sweep: SweepResult | None = Field(default=None, description="The snippet at other sizes, where that was asked for.")
    gradients: list[GradientCheck] = Field(default=[], description="Training, checked from end to end.")
    output: str = Field(default="", description="What the snippet printed, cut at a stated length.")
    error: Error | None = None

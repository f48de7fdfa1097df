"""What the service answers with. Written by tools/client_types.py: change the models there, and run it again.

A field that a service of another version does not send has the value that it has here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Union


@dataclass(frozen=True)
class Access:
    """A read or a write of one buffer: `index` is the element offset as a formula of the loop variables."""

    #: The buffer that is read or written.
    buffer: str = ""

    #: The element offset as a formula of the loop variables, or that a call uses the whole buffer.
    index: str = ""

    #: Bytes of the elements that are touched. Each element counts once.
    bytes: int = 0


@dataclass(frozen=True)
class AlignedKernels:
    """Kernels of both compilers that compute the same nodes: the smallest sets that are whole in both."""

    #: Our graph.
    graph: str = ""

    #: How the other compiler divides the nodes. Merged is fewer kernels.
    relation: Literal["same", "split", "merged", "regrouped", "only ours", "only theirs"] = "same"

    #: Nodes of `aten` that they compute, in the graph's order.
    nodes: list[str] = field(default_factory=list)

    #: Positions of our kernels in the graph, counted from 0.
    ours: list[int] = field(default_factory=list)

    #: Positions of the other compiler's kernels, counted from 0.
    theirs: list[int] = field(default_factory=list)

    #: The difference, in a sentence. Empty if there is none.
    sentence: str = ""

    #: Our decision that explains the difference. Empty if none does.
    because: str = ""

    #: Position of that decision among the graph's `decisions`.
    decision: Optional[int] = None

    #: The two loop nodes that the decision is about.
    pair: Optional[tuple[str, str]] = None

    #: The other compiler's words for not fusing. Empty if it has none.
    refusal: str = ""

    #: How often the same is found. 0 if an earlier entry counts this one.
    count: int = 1


@dataclass(frozen=True)
class Artefact:
    """One text of torch's own trace, as its log prints it; `chars` is its length before it was cut."""

    #: The artefact as torch's logs name it.
    name: str = ""

    #: What it is, in words.
    title: str = ""

    #: Its text, cut at a stated length.
    text: str = ""

    #: Characters before it was cut.
    chars: int = 0


@dataclass(frozen=True)
class Buffer:
    """A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs)."""

    #: Its name.
    name: str = ""

    #: Its sizes, outermost first.
    shape: list[Union[int, str]] = field(default_factory=list)

    #: Its strides, in elements.
    stride: list[Union[int, str]] = field(default_factory=list)

    #: Its dtype by torch's name.
    dtype: str = ""

    #: Bytes of memory that it takes.
    bytes: int = 0

    #: Position of the kernel that writes it. An input has -1.
    first: Optional[int] = None

    #: Position of the last kernel that uses it. What the call leaves has the number of kernels.
    last: Optional[int] = None

    #: What becomes of it. A register is never in memory.
    fate: Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"] = "input"

    #: The buffer whose memory it gets.
    takes_over: Optional[str] = None

    #: The smallest value of integers that the graph is given.
    smallest: Optional[int] = None

    #: The largest value of integers that the graph is given.
    largest: Optional[int] = None

    #: A further remark.
    note: Optional[str] = None


@dataclass(frozen=True)
class CallErrors:
    """One result or gradient of a call, with rounded values, of everybody who gave it, element by element."""

    #: The function that was called.
    entry: str = ""

    #: Its name: "the result", "result 2", "the gradient of x".
    output: str = ""

    #: The seed of the inputs. With the snippet's own seed they are the snippet's own inputs. With another seed each
    #: floating argument gets values drawn from its own.
    seed: int = 0

    #: Its dtype by torch's name.
    dtype: str = ""

    #: How many elements were compared. A complex element counts as two.
    elements: int = 0

    #: The errors of each contestant. Eager is first.
    of: list[ContestantErrors] = field(default_factory=list)


@dataclass(frozen=True)
class CallTimes:
    """One call of a graph, measured: until the host has returned, and between the events before its first launch and
    after its last, in microseconds; the least of the calls that were timed."""

    #: Microseconds until the host has returned.
    measured_host_us: float = 0.0

    #: Microseconds on the device, from before the first launch until after the last.
    measured_elapsed_us: float = 0.0


@dataclass(frozen=True)
class CodeLevel:
    """The kernel in one of the languages that it goes through."""

    #: The language.
    name: Literal["ttir", "ttgir", "llvm", "ptx", "sass", "amdgcn", "assembly"] = "ttir"

    #: The code, without debug sections.
    text: str = ""

    #: Pairs of a line of `text` and a line of the source.
    lines: list[tuple[int, int]] = field(default_factory=list)

    #: Lines before the text was cut.
    all_lines: int = 0

    #: What was left out at the end, in a sentence.
    cut: Optional[str] = None


@dataclass(frozen=True)
class Compilation:
    """One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after."""

    #: Its id in torch's logs, such as 0/1: the frame, and how often it was compiled before.
    id: str = ""

    #: The user's function that was compiled. Null if the function has no name.
    function: Optional[str] = None

    #: The first line of that function in the snippet.
    line: Optional[int] = None

    #: Names of the graphs that it gave.
    graphs: list[str] = field(default_factory=list)

    #: The function's bytecode, one instruction a line.
    bytecode_before: str = ""

    #: The bytecode that Dynamo made of it, one instruction a line.
    bytecode_after: str = ""

    #: What torch logged of this compilation.
    artefacts: list[Artefact] = field(default_factory=list)


@dataclass(frozen=True)
class CompilePhase:
    """What one phase of compiling took, of all graphs together: ours by the clock, the peer's by torch's counters."""

    #: Capture is Dynamo and AOTAutograd. Build is the compilation by g++ or Triton.
    phase: Literal["capture", "lowering", "scheduling", "code generation", "build"] = "capture"

    #: Our seconds. Null if none were taken.
    compiled_seconds: Optional[float] = None

    #: The peer's seconds. Null if none were taken.
    peer_seconds: Optional[float] = None


@dataclass(frozen=True)
class Contestant:
    """Wall time of one way to run the same calls, in milliseconds; every sample is kept."""

    #: "eager", "compiled" (ours), "peer", or the name of another contestant.
    name: str = ""

    #: Every sample, in milliseconds, in the order in which they were taken.
    samples_ms: list[float] = field(default_factory=list)

    #: The median of the samples, in milliseconds.
    median_ms: float = 0.0

    #: The 25th percentile of the samples, in milliseconds.
    low_ms: float = 0.0

    #: The 75th percentile of the samples, in milliseconds.
    high_ms: float = 0.0

    #: How much the median of another run may differ, in 95 of 100 runs. Null in older reports.
    spread_ms: Optional[float] = None

    #: The factor by which the ratio of eager's median to this one may differ in another run, in 95 of 100 runs. 1.04 is
    #: 4 %. Samples are interleaved, so the two spreads do not give this factor. Null if unknown.
    ratio_factor: Optional[float] = None

    #: Seconds of the first call, compiling included. Null if it was not timed.
    compile_s: Optional[float] = None

    #: Whether the ratio to eager is further from 1 than `ratio_factor`.
    differs_from_eager: Optional[bool] = None


@dataclass(frozen=True)
class ContestantErrors:
    """How far one contestant's output is from float64."""

    #: Its name, as among the contestants that were timed.
    contestant: str = ""

    #: Errors of its elements. Null if not comparable.
    errors: Optional[ElementErrors] = None

    #: What is wrong, in a clause, if rounding does not explain it: an error, another dtype or shape, or NaN or an
    #: infinity where neither float64 nor eager has it.
    problem: Optional[str] = None


@dataclass(frozen=True)
class ContestantOutcome:
    """One way to run the same calls: its time and its error, or why it has none."""

    #: Its name, as the options ask for it.
    name: str = ""

    #: Milliseconds of a call: the median of all samples.
    median_ms: Optional[float] = None

    #: Seconds of its first call, compiling included.
    compile_s: Optional[float] = None

    #: Its largest relative error against float64.
    max_error: Optional[float] = None

    #: Why it has no time, in a sentence.
    failure: Optional[str] = None


@dataclass(frozen=True)
class Decision:
    """One pair that the scheduler looked at: what it decided, and why, with numbers."""

    #: The first of the two, as a loop node.
    a: str = ""

    #: The second of the two, as a loop node.
    b: str = ""

    #: The round of the scheduler in which they were looked at.
    round: int = 0

    #: Vertical if one reads what the other writes. Otherwise horizontal.
    kind: Literal["vertical", "horizontal"] = "vertical"

    #: Whether the two became one kernel.
    verdict: Literal["fused", "refused"] = "fused"

    #: Id of the reason, as in GET /api/v1/reasons.
    reason: str = ""

    #: The reason in a sentence, with its numbers.
    message: str = ""

    #: The numbers that the reason speaks of, by name.
    numbers: dict[str, Any] = field(default_factory=dict)

    #: What the cost model expects of the fusion.
    score: Optional[Score] = None

    #: Lines of the snippet that the two came from.
    lines: list[int] = field(default_factory=list)

    #: The buffer that the verdict is about.
    shared: Optional[str] = None

    #: Bytes of that buffer.
    shared_bytes: Optional[int] = None

    #: The side of `a`, then the side of `b`.
    sides: list[Side] = field(default_factory=list)

    #: Whether both index expressions use the same loops.
    same_loops: bool = False

    #: The loops that a fusion gave up, as formulas of the others.
    change: str = ""

    #: The number of the unit that the fusion of two units made.
    makes: Optional[int] = None

    #: A change under which the rules fuse the two. It was tried.
    would_fuse_if: str = ""


@dataclass(frozen=True)
class EdgeTraffic:
    """One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that."""

    #: The buffer.
    tensor: str = ""

    #: The loop node that makes it. Null for an input or a constant.
    producer: Optional[str] = None

    #: The loop node that reads it.
    consumer: str = ""

    #: Bytes that writing it takes without fusion, once for all readers.
    written_bytes: int = 0

    #: Bytes that this reader reads of it without fusion.
    read_bytes: int = 0

    #: The part of `read_bytes` that the reader's kernel does not read for it.
    saved_read_bytes: int = 0

    #: What fusion made of it.
    fate: Literal["memory", "register", "read_saved", "recomputed", "shared_read"] = "memory"


@dataclass(frozen=True)
class ElementErrors:
    """Errors of the elements of one output against float64, those left out that are NaN or infinite."""

    #: The largest difference of an element.
    largest: float = 0.0

    #: The mean of all differences.
    mean: float = 0.0

    #: The largest difference in units in the last place of the output's dtype, at the exact value.
    largest_ulp: float = 0.0

    #: The mean difference in units in the last place.
    mean_ulp: float = 0.0


@dataclass(frozen=True)
class Environment:
    """What a result depends on besides the snippet and the options."""

    #: Version of Python.
    python: str = ""

    #: Version of PyTorch.
    torch: str = ""

    #: Version of Triton. Null if Triton is not installed.
    triton: Optional[str] = None

    #: Where tensors were: cpu or cuda.
    device: str = ""

    #: The device's name as its driver or the kernel gives it.
    device_name: str = ""

    #: What Triton kernels were generated for, such as sm_90.
    target: str = ""

    #: The device whose model decided and predicted.
    decides_for: str = ""

    #: The device that ran. If the model of another device decided, that device follows.
    peaks: list[Peak] = field(default_factory=list)

    #: Version of the GPU's driver. Null on a CPU.
    driver: Optional[str] = None

    #: Clocks of the GPU in MHz, by name. Null if they were not read.
    clocks: Optional[dict[str, Any]] = None

    #: The seed that was set before the snippet ran.
    seed: int = 0

    #: Commit of the compiler's sources. Null if unknown.
    commit: Optional[str] = None

    #: Version of Fusionscope.
    compiler: str = ""

    #: Threads that a CPU computed with. Null on a GPU.
    threads: Optional[int] = None


@dataclass(frozen=True)
class Error:
    """What stopped an exploration. `line` is the user's own line, counted from 1, where one is known."""

    #: The type of the exception, or a name of ours such as TimeLimit.
    type: str = ""

    #: What went wrong, in its own words.
    message: str = ""

    #: The line of the snippet, counted from 1. Null if unknown.
    line: Optional[int] = None

    #: The stage that it stopped.
    stage: Optional[str] = None

    #: What the reader can do about it.
    hint: Optional[str] = None

    #: Frames of the snippet. If the defect is ours, frames of the compiler, without the snippet's text.
    traceback: Optional[str] = None


@dataclass(frozen=True)
class ExecutionTraffic:
    """What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`, and
    `library_bytes` that over the library calls among them, which move it at least."""

    #: Bytes of all launches together.
    bytes: int = 0

    #: Bytes of the library calls, which are the least that they move.
    library_bytes: int = 0

    #: Each launch, in order.
    launches: list[LaunchTraffic] = field(default_factory=list)


@dataclass(frozen=True)
class Flip:
    """Something that the compiler does otherwise than at the size before."""

    #: What flips: a verdict, a count of kernels, or a choice.
    kind: Literal["verdict", "kernels", "choice"] = "verdict"

    #: The graph that it is in. Empty for a count of all graphs.
    graph: Optional[str] = None

    #: The pair as "a + b", the kernel whose plan it is, or "launches" or "kernels".
    about: str = ""

    #: The answer at the size before.
    before: str = ""

    #: The answer at this size.
    after: str = ""


@dataclass(frozen=True)
class FoldingDecision:
    """Whether a convolution takes the products and sums of each channel, and the ReLU, that follow it."""

    #: Whether it was folded.
    verdict: Literal["folded", "kept"] = "folded"

    #: Id of the reason, as in GET /api/v1/reasons.
    reason: str = ""

    #: The reason in a sentence.
    message: str = ""

    #: The nodes of `aten`. The convolution is first, the ReLU last.
    nodes: list[str] = field(default_factory=list)

    #: Predicted time of the pass that is saved.
    predicted_saved_us: float = 0.0

    #: Predicted microseconds to compute the filter in each call.
    predicted_filter_us: float = 0.0

    #: Lines of the snippet that it is about.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class FxNode:
    """A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet."""

    #: Its name in the graph, such as mul_1.
    name: str = ""

    #: FX's kind of node: placeholder, call_function, call_method, call_module, get_attr or output.
    op: str = ""

    #: What it calls or stands for, such as aten.mul.Tensor.
    target: str = ""

    #: Names of the nodes that it takes, in order.
    args: list[str] = field(default_factory=list)

    #: The node as one line of code. A long line is cut.
    text: str = ""

    #: Sizes of its result, outermost first. Null if it is not a single tensor.
    shape: Optional[list[Union[int, str]]] = None

    #: Strides of its result, in elements. Null if it has none.
    stride: Optional[list[Union[int, str]]] = None

    #: The dtype of its result by torch's name, such as float32.
    dtype: Optional[str] = None

    #: Bytes of all elements of its result. Null if a size is known only when it runs.
    bytes: Optional[int] = None

    #: Lines of the snippet that it came from, the innermost call last.
    lines: list[int] = field(default_factory=list)

    #: Path of the innermost nn.Module that it ran in.
    module: Optional[str] = None

    #: Whether no result of the graph depends on it.
    dead: bool = False


@dataclass(frozen=True)
class GpuWhileTimed:
    """Clocks of the GPU while the snippet had it for itself, to be timed. The service looked from outside."""

    #: How often the service looked.
    looks: int = 0

    #: The lowest clock of the multiprocessors that was seen, in MHz.
    sm_mhz_least: float = 0.0

    #: The highest clock that the GPU has, in MHz.
    sm_mhz_possible: Optional[float] = None

    #: The highest temperature that was seen, in degrees Celsius.
    temperature_c_most: Optional[float] = None

    #: What slowed it at any of these looks, such as "power cap". Empty if nothing did.
    slowed_by: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GradientCheck:
    """One result or gradient of a whole trained function: errors of eager and compiled against it in float64. An error
    is null if the two cannot be compared."""

    #: The function that was called.
    entry: str = ""

    #: "the result", or "the gradient of x".
    name: str = ""

    #: Relative error of eager against float64. Null if the two cannot be compared.
    eager_error: Optional[float] = None

    #: Relative error of compiled against float64. Null if the two cannot be compared.
    compiled_error: Optional[float] = None

    #: The largest error that rounding explains. Null in older reports.
    allowed_error: Optional[float] = None

    #: Whether rounding explains the error. See docs/measuring.md.
    is_correct: bool = False


@dataclass(frozen=True)
class Graph:
    """One captured graph, from FX to kernels."""

    #: Its name, such as graph_0, or graph_0_backward for its backward graph.
    name: str = ""

    #: The user's function that it is a part of.
    function: Optional[str] = None

    #: Whether the graph only computes, or is one half of a training step.
    phase: Literal["inference", "forward", "backward"] = "inference"

    #: The backward graph of a forward graph, or the reverse.
    partner: Optional[str] = None

    #: How often the snippet ran the graph.
    calls: int = 0

    #: Where the kernels run: cpu or cuda. A graph of CPU tensors runs on the CPU, also beside a GPU.
    device: str = ""

    #: The graph as Dynamo captured it.
    fx: list[FxNode] = field(default_factory=list)

    #: The graph after AOTAutograd: functional and decomposed, and forward or backward alone.
    aten: list[FxNode] = field(default_factory=list)

    #: Conditions under which the graph may be used.
    guards: list[Guard] = field(default_factory=list)

    #: The graph break that ended this graph, if one did.
    breaks: list[GraphBreak] = field(default_factory=list)

    #: Why this graph was compiled again, if it was.
    recompiles: list[Recompile] = field(default_factory=list)

    #: Sizes and numbers that the graph leaves open.
    symbols: list[Symbol] = field(default_factory=list)

    #: What the forward graph saved for this backward graph.
    saved: list[SavedTensor] = field(default_factory=list)

    #: Nodes of the forward graph that this backward graph computes again.
    recomputed: list[str] = field(default_factory=list)

    #: What was replaced between `fx` and `aten`, or nearly was.
    rewrites: list[Rewrite] = field(default_factory=list)

    #: Nodes that became no loop: there was nothing to do.
    removed: list[Removed] = field(default_factory=list)

    #: How tensors lie around convolutions.
    layouts: list[LayoutDecision] = field(default_factory=list)

    #: What convolutions took over from later nodes.
    foldings: list[FoldingDecision] = field(default_factory=list)

    #: Products whose sizes are not divisible by eight.
    paddings: list[PaddingDecision] = field(default_factory=list)

    #: The loop nodes before fusion.
    loops: list[LoopNode] = field(default_factory=list)

    #: The scheduler's decisions. A large graph lists the weightiest ones.
    decisions: list[Decision] = field(default_factory=list)

    #: Decisions without their details: both units, the round and the reason.
    more_decisions: list[tuple[int, int, int, str]] = field(default_factory=list)

    #: Pairs of kernels with as many iterations that were not asked about, because they are far apart.
    pairs_not_asked: int = 0

    #: What the scheduler did, round by round.
    rounds: list[Round] = field(default_factory=list)

    #: The tensors of the graph, and what becomes of each.
    buffers: list[Buffer] = field(default_factory=list)

    #: The memory that the buffers take.
    memory: Optional[Memory] = None

    #: The bytes that the graph moves.
    traffic: Optional[Traffic] = None

    #: What is launched, in order.
    kernels: list[Kernel] = field(default_factory=list)

    #: The pairs of kernels that were not fused. Those with most bytes at stake are first.
    refusals: list[Refusal] = field(default_factory=list)

    #: Predicted time of the generated kernels in a row, with the gaps between them.
    predicted_us: Optional[float] = None

    #: Microseconds of one call of the graph. It was measured beside each kernel alone.
    call_us: Optional[float] = None

    #: Why the measured times of the kernels are not reliable: they do not add up to the time of the call. The kernels
    #: then have no bandwidth.
    disturbed: Optional[str] = None

    #: Errors of the outputs against float64, for one seed, on the first inputs.
    errors: list[OutputErrors] = field(default_factory=list)

    #: The function that launches the kernels, as Python.
    wrapper: str = ""

    #: Whether the launches are replayed as one CUDA graph.
    replay: Optional[Replay] = None

    #: Launches of eager PyTorch for the same graph.
    eager_kernels: Optional[int] = None

    #: Bytes that eager PyTorch moves for the same graph.
    eager_bytes: Optional[int] = None

    #: Bytes that any compiler must move.
    floor_bytes: Optional[int] = None


@dataclass(frozen=True)
class GraphBreak:
    """Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line."""

    #: Dynamo's explanation, its first sentence.
    reason: str = ""

    #: The line of the snippet at which tracing stopped.
    line: Optional[int] = None

    #: Dynamo's own name of it.
    kind: Optional[str] = None

    #: Dynamo's own hints.
    hint: Optional[str] = None

    #: Id of the kind of break, as in docs/graph_breaks.md.
    category: str = "other"

    #: The kind of break in words.
    title: str = ""

    #: What would keep the graph whole, in one sentence.
    remedy: str = ""

    #: The page of PyTorch's documentation on it.
    url: Optional[str] = None

    #: The graphs that it ended.
    before: list[str] = field(default_factory=list)

    #: The graphs that ran next, if tracing started again.
    after: list[str] = field(default_factory=list)

    #: How often tracing met it.
    count: int = 1


@dataclass(frozen=True)
class Guard:
    """A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms."""

    #: Dynamo's kind of guard, such as TENSOR_MATCH.
    kind: str = ""

    #: What is guarded, as Dynamo writes it, such as L['x'].
    name: str = ""

    #: The condition, as code or in words.
    expression: str = ""

    #: Lines of the snippet that it is about.
    lines: list[int] = field(default_factory=list)

    #: What it is about, as the snippet writes it: `n`, `x.size(0)`.
    subject: str = ""

    #: The change of the input that fails it, such as `n` other than 6.
    fails_when: str = ""


@dataclass(frozen=True)
class IndexTerm:
    """One term of an index expression with its sign: `512 * x0`, ` + x1`. `differs` marks what the other side of the
    decision does not have."""

    #: The term with its sign.
    text: str = ""

    #: Whether the other side does not have the term.
    differs: bool = False


@dataclass(frozen=True)
class Kernel:
    """What is launched: one generated function or one library call. A generated one gets `reads`, then `writes`, then
    `sizes`."""

    #: The name of its function, unique among generated kernels, or the operator of a library call.
    name: str = ""

    #: Its language. extern is a library call.
    kind: Literal["triton", "cpp", "extern"] = "triton"

    #: The loop nodes that were fused into it. It computes all but `left_out`.
    nodes: list[str] = field(default_factory=list)

    #: Those of `nodes` that only other kernels compute, where they need them.
    left_out: list[str] = field(default_factory=list)

    #: Loop nodes of other kernels that it computes too, rather than read their values.
    computes_again: list[str] = field(default_factory=list)

    #: The nodes of `aten` behind the loop nodes that it computes.
    origins: list[str] = field(default_factory=list)

    #: Its whole text.
    source: str = ""

    #: The language of `source`, for highlighting.
    language: Literal["python", "cpp"] = "python"

    #: Where each line of `source` comes from.
    lines: list[KernelLine] = field(default_factory=list)

    #: Lines of the snippet that it computes for.
    user_lines: list[int] = field(default_factory=list)

    #: Buffers that it reads.
    reads: list[str] = field(default_factory=list)

    #: Buffers that it writes.
    writes: list[str] = field(default_factory=list)

    #: Bytes that it moves. Each read counts once, and each write counts once.
    bytes: int = 0

    #: Floating-point operations. An element of an operation or of a reduction counts as one, a pair of a product as
    #: two. Null if unknown.
    flops: Optional[int] = None

    #: Programs along each axis of the launch. Null for C++ and library calls.
    grid: Optional[list[int]] = None

    #: The settings that it was generated with, such as tile sizes and warps, by name.
    config: dict[str, Any] = field(default_factory=dict)

    #: Registers of a thread, from the assembler.
    registers: Optional[int] = None

    #: Bytes that a thread spills and loads again, from the assembler.
    spills: Optional[int] = None

    #: Shared bytes of a program, from the assembler.
    shared_bytes: Optional[int] = None

    #: Microseconds that the cost model expects.
    predicted_us: Optional[float] = None

    #: Microseconds of the kernel alone on the device: the median of all samples.
    measured_us: Optional[float] = None

    #: How much `measured_us` of another run may differ, in 95 of 100 runs.
    spread_us: Optional[float] = None

    #: 10^9 bytes a second: `bytes` divided by `measured_us`. Null where `steps` has a library call.
    gb_per_s: Optional[float] = None

    #: `gb_per_s` as a percentage of the device's memory bandwidth. Null on a CPU.
    percent_of_peak: Optional[float] = None

    #: Open sizes that a launch passes after the buffers, with their values in the first call.
    sizes: dict[str, Any] = field(default_factory=dict)

    #: The buffers of `writes` whose values before the launch matter.
    updates: list[str] = field(default_factory=list)

    #: The calls that a launch of a product on a CPU consists of, in order.
    steps: list[KernelStep] = field(default_factory=list)

    #: Buffers that are passed as descriptors.
    descriptors: list[TileDescriptor] = field(default_factory=list)

    #: The first kernel of the graph with the same code, except for names.
    same_as: Optional[str] = None

    #: How the call launches a Triton kernel of the snippet, whose text is `source`.
    own: Optional[UserKernel] = None

    #: Where the values of a generated GPU kernel live.
    levels: Optional[KernelLevels] = None

    #: The same kernel for other targets.
    also: list[KernelArtifact] = field(default_factory=list)


@dataclass(frozen=True)
class KernelArtifact:
    """The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel."""

    #: What it is written in.
    language: Literal["triton", "cpp", "ptx"] = "triton"

    #: The target that it was generated for, such as sm_90.
    target: str = ""

    #: Its whole text.
    source: str = ""

    #: Where each line of `source` comes from.
    lines: list[KernelLine] = field(default_factory=list)

    #: Registers of a thread, from the assembler.
    registers: Optional[int] = None

    #: Bytes that a thread spills and loads again, from the assembler.
    spills: Optional[int] = None

    #: Shared bytes of a program, from the assembler.
    shared_bytes: Optional[int] = None

    #: The settings that it was generated with, by name.
    config: dict[str, Any] = field(default_factory=dict)

    #: How this rendering was checked, and with what result.
    check: Optional[str] = None

    #: The largest relative error that the check found.
    max_error: Optional[float] = None


@dataclass(frozen=True)
class KernelLevels:
    """Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured."""

    #: The GPU whose plan it is, such as sm_90.
    target: str = ""

    #: How the kernel goes through its loops.
    plan: Literal["pointwise", "persistent", "looped", "split", "team", "look_back", "batch", "product"] = "pointwise"

    #: How many programs run.
    programs: int = 0

    #: Threads of one program.
    threads: int = 0

    #: Elements of a program along each axis. Along r, of one step.
    tile: dict[str, Any] = field(default_factory=dict)

    #: Passes over the reduction loops. 1 if all of r stays in registers.
    passes: int = 0

    #: What the kernel loads of each tensor.
    loads: list[TensorLoads] = field(default_factory=list)

    #: Predicted bytes that later passes load again and that the cache no longer holds.
    missed_bytes: int = 0

    #: Values of nodes that stay in registers and reach no memory.
    kept: list[str] = field(default_factory=list)

    #: Values that the threads of a program combine, through shuffles and shared memory.
    combined: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class KernelLine:
    """Where one line of a kernel comes from: `line` counts from 1 in the kernel's source."""

    #: The line in the kernel's source, counted from 1.
    line: int = 0

    #: Loop nodes that the line computes for.
    nodes: list[str] = field(default_factory=list)

    #: Lines of the snippet that it computes for.
    user_lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class KernelStep:
    """One call among those that a launch consists of: a function of the kernel's source, or a library call."""

    #: The function of `source`. Null for a library call.
    function: Optional[str] = None

    #: The buffers that the function gets, in order.
    buffers: list[str] = field(default_factory=list)

    #: The loop node whose library call it is.
    call: Optional[str] = None


@dataclass(frozen=True)
class LaunchTraffic:
    """What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that
    eager made the call for."""

    #: Eager's operator, or the name of a loop node or of a kernel.
    name: str = ""

    #: The node of `fx` that eager made the call for.
    node: Optional[str] = None

    #: Bytes of all its tensors together.
    bytes: int = 0

    #: What it moves of each tensor.
    tensors: list[TensorTraffic] = field(default_factory=list)

    #: Lines of the snippet that it came from.
    lines: list[int] = field(default_factory=list)

    #: What a library call may move besides. `bytes` is then the least that it moves.
    unseen: str = ""


@dataclass(frozen=True)
class LayoutConversion:
    """A copy into other strides at the edge of a region: `buffer` is made of `source` for `reader`. `bytes` are read
    and written by a kernel of its own; what is fused into the loop that makes `source` moves fewer."""

    #: The copy.
    buffer: str = ""

    #: The tensor that is copied.
    source: str = ""

    #: What the copy is for its reader.
    what: Literal["image", "gradient", "filter", "argument", "output"] = "image"

    #: The node that needs it in these strides.
    reader: str = ""

    #: Bytes that are read and written by a kernel of its own.
    bytes: int = 0


@dataclass(frozen=True)
class LayoutDecision:
    """How tensors lie around convolutions that hang together: channels-last, or as eager has them, and why. Or one that
    is a product of patches, or a loop."""

    #: How the convolutions are computed.
    verdict: Literal["channels_last", "kept", "loop", "product"] = "channels_last"

    #: Id of the reason, as in GET /api/v1/reasons.
    reason: str = ""

    #: The reason in a sentence.
    message: str = ""

    #: The convolutions, as nodes of `aten`.
    convolutions: list[str] = field(default_factory=list)

    #: The numbers that the reason speaks of, by name.
    numbers: dict[str, Any] = field(default_factory=dict)

    #: Predicted time of the library calls with tensors as in eager.
    predicted_kept_us: Optional[float] = None

    #: Predicted time channels-last, with conversions, or of the product or loop.
    predicted_moved_us: Optional[float] = None

    #: Buffers that are channels-last, or would be if it paid.
    buffers: list[str] = field(default_factory=list)

    #: Copies at the edges of the region.
    conversions: list[LayoutConversion] = field(default_factory=list)

    #: Lines of the snippet that it is about.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class LoopNode:
    """A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line."""

    #: Its name: the name of the buffer that it writes, or of its library call.
    name: str = ""

    #: The kind of loop. extern is a library call.
    kind: Literal["pointwise", "reduction", "scan", "scatter", "extern", "view"] = "pointwise"

    #: Trip counts of its loops, outermost first.
    sizes: list[Union[int, str]] = field(default_factory=list)

    #: Trip counts of its reduction loops.
    reduction_sizes: list[Union[int, str]] = field(default_factory=list)

    #: The dtype of what it writes, by torch's name.
    dtype: Optional[str] = None

    #: Sizes of what it writes, outermost first.
    shape: Optional[list[Union[int, str]]] = None

    #: Its body, one operation a line.
    body: list[str] = field(default_factory=list)

    #: What it reads.
    reads: list[Access] = field(default_factory=list)

    #: What it writes.
    writes: list[Access] = field(default_factory=list)

    #: FX nodes of `aten` that it came from.
    origins: list[str] = field(default_factory=list)

    #: Lines of the snippet that it came from.
    lines: list[int] = field(default_factory=list)

    #: Whether no result of the graph depends on it.
    dead: bool = False

    #: The buffer whose values a scatter begins with.
    updates: Optional[str] = None

    #: The buffer that it fills a part of, with other nodes.
    part_of: Optional[str] = None

    #: The code of a library call. view(buffer, shape, stride, offset) is a part of a buffer.
    call: Optional[str] = None

    #: Whether it is an ATen call that we have no lowering for.
    fallback: bool = False


@dataclass(frozen=True)
class MachineCode:
    """One kernel compiled for one target, on no device: every level of its code, and what the last one says."""

    #: Its function's name.
    kernel: str = ""

    #: What its source is written in.
    language: Literal["triton", "cpp"] = "triton"

    #: What it was compiled for: sm_90, gfx942, or host for this machine's processor.
    target: str = ""

    #: Every level of its code, from the kernel's source down.
    levels: list[CodeLevel] = field(default_factory=list)

    #: Threads of a program.
    threads: Optional[int] = None

    #: Registers of a thread. On an AMD GPU vector registers.
    registers: Optional[int] = None

    #: Bytes that a thread spills and loads again.
    spills: Optional[int] = None

    #: Bytes of shared memory of a program.
    shared_bytes: Optional[int] = None

    #: Null if the device's rules are not known.
    occupancy: Optional[Occupancy] = None

    #: Instructions of the last level by what they do. Each counts once, as it is written.
    instructions: dict[str, Any] = field(default_factory=dict)

    #: Loads and stores of the last level, in order.
    accesses: list[MemoryAccess] = field(default_factory=list)

    #: The different instructions of matrix units. Empty if they are not used.
    matrix_instructions: list[str] = field(default_factory=list)

    #: The innermost loops of a C++ kernel.
    loops: list[VectorLoop] = field(default_factory=list)

    #: What the compiler says of the loops of a C++ kernel.
    remarks: list[VectorRemark] = field(default_factory=list)

    #: The steps of Triton that changed the kernel.
    passes: list[Pass] = field(default_factory=list)

    #: What is missing and why, in sentences.
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Memory:
    """What the buffers of a graph take, its inputs not counted, in bytes."""

    #: The most that is alive at one time.
    peak_bytes: int = 0

    #: The peak of our kernels in the order of the code.
    unordered_peak_bytes: int = 0

    #: The sum of all buffers of our kernels.
    without_reuse_bytes: int = 0

    #: Buffers that get the memory of others.
    reuses: list[Reuse] = field(default_factory=list)

    #: The most that is alive at one time without fusion.
    unfused_peak_bytes: int = 0

    #: The sum of all buffers without fusion.
    unfused_without_reuse_bytes: int = 0

    #: Buffers that would get the memory of others without fusion.
    unfused_reuses: list[Reuse] = field(default_factory=list)

    #: What is alive while each kernel runs, and after the last.
    live_bytes: list[int] = field(default_factory=list)

    #: Bytes that are alive without fusion, node by node.
    unfused_live_bytes: list[int] = field(default_factory=list)

    #: The buffers without fusion, with positions among the nodes that are not dead.
    unfused_buffers: list[Buffer] = field(default_factory=list)


@dataclass(frozen=True)
class MemoryAccess:
    """One load or store in the machine's code."""

    #: Its line in the text of the last level.
    line: int = 0

    #: The line of the kernel's source, if known.
    source_line: Optional[int] = None

    #: Name of the instruction, with the parts that change its meaning.
    instruction: str = ""

    #: The kind of memory.
    space: Literal["global", "shared", "local", "constant", "other"] = "global"

    #: Whether it writes.
    is_store: bool = False

    #: Bits of one thread. Null if many threads share one access.
    bits: Optional[int] = None


@dataclass(frozen=True)
class NamedSize:
    """A size of the snippet that a sweep can name, with its value as written."""

    #: The size as a sweep names it.
    name: str = ""

    #: Its value as written.
    value: int = 0

    #: Lines of the snippet that contain it.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Note:
    """Something that the reader must know about how the snippet was run (an input that was chosen, a device that was
    replaced, a stage that does not apply). `line` is a line of the snippet."""

    #: The note, in sentences.
    message: str = ""

    #: The line of the snippet that it is about.
    line: Optional[int] = None


@dataclass(frozen=True)
class Observed:
    """How the process of the snippet ran and ended, as the service saw it. The snippet cannot change any of this."""

    #: Number of this attempt. Earlier attempts were lost with their worker.
    attempt: int = 1

    #: Why it ended: "exited" by itself, a limit that it exceeded ("time_limit", "output_limit", "report_limit",
    #: "memory_limit", "disk_limit"), "cancelled", or "worker_lost". Empty while it runs.
    ending: str = ""

    #: Exit code of the process, if it exited.
    exit_code: Optional[int] = None

    #: Number of the signal that ended the process, if one did.
    signal: Optional[int] = None

    #: Seconds from the snippet's start to its end, or until now while it runs. All waiting is included.
    wall_seconds: float = 0.0

    #: Seconds that it may run, without waiting for the device.
    wall_limit_seconds: Optional[float] = None

    #: Seconds of `wall_seconds` that it waited for the device.
    waited_seconds: float = 0.0

    #: Processor time of all its processes.
    processor_seconds: Optional[float] = None

    #: Most memory of all its processes at one time.
    peak_memory_bytes: Optional[int] = None

    #: The most memory on the GPU at one time.
    peak_gpu_memory_bytes: Optional[int] = None

    #: Clocks of its GPU meanwhile. Null on a CPU, and if the driver gives none.
    gpu_while_timed: Optional[GpuWhileTimed] = None

    #: What confined it: "A" namespaces, "B" Landlock and seccomp, "trusted" nothing.
    tier: Optional[str] = None

    #: The layers of isolation in force, in words.
    isolation: list[str] = field(default_factory=list)

    #: Version of Python on the worker.
    python: str = ""

    #: Version of torch on the worker.
    torch: str = ""

    #: Version of Triton on the worker. Null if it has none.
    triton: Optional[str] = None

    #: The device that it was given: "cpu" or "cuda".
    device: str = ""

    #: Name of that device.
    device_name: str = ""

    #: Statements of the report that cannot be true, a sentence each. Such a report is not given as an answer again.
    #: Figures that cannot be true are left out.
    contradictions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Occupancy:
    """How many warps a multiprocessor holds of this kernel at most, by NVIDIA's rules: computed, not measured."""

    #: Warps of the kernel that a multiprocessor holds at once.
    warps: int = 0

    #: Warps that the multiprocessor has room for.
    most_warps: int = 0

    #: `warps` as a percentage of `most_warps`.
    percent: float = 0.0

    #: Programs of the kernel that a multiprocessor holds at once.
    programs: int = 0

    #: What each resource allows.
    limits: list[OccupancyLimit] = field(default_factory=list)

    #: The resources that allow the fewest programs.
    limited_by: list[str] = field(default_factory=list)

    #: Where the rules and the limits are written.
    source: str = ""


@dataclass(frozen=True)
class OccupancyLimit:
    """How many programs one resource has room for on a multiprocessor."""

    #: The resource.
    by: Literal["registers", "shared memory", "warps", "programs"] = "registers"

    #: Programs that it has room for.
    programs: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it
    by the fusion of others."""

    #: The scheduler's last answer.
    verdict: Literal["fused", "refused", "never considered"] = "fused"

    #: Id of the reason, as in GET /api/v1/reasons. Null if the scheduler never asked.
    reason: Optional[str] = None

    #: Whether both are in one kernel in the end.
    together: bool = False


@dataclass(frozen=True)
class OutputErrors:
    """One output of a graph with rounded values, of eager and of compiled, element by element."""

    #: The ATen node of the output.
    output: str = ""

    #: Its dtype by torch's name.
    dtype: str = ""

    #: How many elements were compared. A complex element counts as two.
    elements: int = 0

    #: Errors of eager PyTorch. Null if not comparable.
    eager: Optional[ElementErrors] = None

    #: Errors of our kernels. Null if not comparable.
    compiled: Optional[ElementErrors] = None


@dataclass(frozen=True)
class PaddingCopy:
    """A matrix that has to be copied for a padded product: `left`, `right` or `bias`, to have a border of zeros, or the
    `result`, to have eager's strides. `bytes` are read and written."""

    #: The node of `aten` that is copied.
    node: str = ""

    #: What it is in the product.
    what: Literal["left", "right", "bias", "result"] = "left"

    #: Bytes that are read and written.
    bytes: int = 0


@dataclass(frozen=True)
class PaddingDecision:
    """Whether a matrix product is computed at sizes that eight divides, and why: a border of zeros is added to what it
    takes, and nobody reads what comes of that. Or several calls compute it ("apart"), each of rows that lie so far
    apart that they start in the same place of a vector of sixteen bytes."""

    #: How the product is computed.
    verdict: Literal["padded", "apart", "kept"] = "padded"

    #: Id of the reason, as in GET /api/v1/reasons.
    reason: str = ""

    #: The reason in a sentence.
    message: str = ""

    #: The matrix product, as a node of `aten`.
    product: str = ""

    #: Rows, inner size and columns of the product as it is written.
    sizes: list[Union[int, str]] = field(default_factory=list)

    #: Rows, inner size and columns of the padded product.
    padded: list[Union[int, str]] = field(default_factory=list)

    #: Predicted time at the sizes as written.
    predicted_kept_us: Optional[float] = None

    #: Predicted time of the padded call or calls.
    predicted_padded_us: Optional[float] = None

    #: Predicted time of the copies for it.
    predicted_copies_us: Optional[float] = None

    #: Predicted time that padding saves.
    predicted_saved_us: Optional[float] = None

    #: The matrices that have to be copied for it.
    copies: list[PaddingCopy] = field(default_factory=list)

    #: Lines of the snippet that it is about.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Pass:
    """One step of Triton that changed the kernel: what went out and what came in, as a unified diff."""

    #: The language that it works on.
    level: Literal["ttir", "ttgir", "llvm", "ptx", "sass", "amdgcn", "assembly"] = "ttir"

    #: Its name in MLIR.
    name: str = ""

    #: The changed lines with two lines around them. A long diff is cut.
    diff: str = ""


@dataclass(frozen=True)
class Peak:
    """What a device does at most, by the record that the compiler has of it."""

    #: The device's name.
    device: str = ""

    #: 10^9 bytes a second that a large kernel reads and writes.
    gb_per_s: float = 0.0

    #: 10^9 float32 operations a second; a fused multiply-add is two.
    gflop_per_s: float = 0.0

    #: 10^9 operations a second of the tensor cores on half types. Null if there are none.
    half_product_gflop_per_s: Optional[float] = None

    #: Whether `gb_per_s` was measured on such a device. Otherwise it is assumed. The number of operations is from the
    #: data sheet, or assumed for a CPU.
    is_measured: bool = False


@dataclass(frozen=True)
class Peer:
    """What TorchInductor made of the same graphs, and how it and all other contestants fared."""

    #: The other compiler.
    name: str = "TorchInductor"

    #: The mode that it was asked for.
    mode: str = "default"

    #: What it launches, in order, library calls included.
    kernels: list[PeerKernel] = field(default_factory=list)

    #: Its graphs, in the order in which it compiled them.
    graphs: list[PeerGraph] = field(default_factory=list)

    #: Its kernels beside ours. Differences come first.
    alignment: list[AlignedKernels] = field(default_factory=list)

    #: The kernels that it did not fuse, with its own words.
    refusals: list[PeerRefusal] = field(default_factory=list)

    #: Times and errors of all that were asked for.
    contestants: list[ContestantOutcome] = field(default_factory=list)

    #: How far everybody's results of whole calls are from float64, for several seeds.
    errors: list[CallErrors] = field(default_factory=list)

    #: The seeds that there are errors for, and why there are no more.
    seeds: str = ""

    #: What it made of the snippet, or why it was not asked, in sentences.
    message: Optional[str] = None


@dataclass(frozen=True)
class PeerBuffer:
    """A tensor of the other compiler's wrapper."""

    #: Its name in the wrapper.
    name: str = ""

    #: Bytes of all its elements. 0 if the size is symbolic.
    bytes: int = 0

    #: Its dtype by torch's name.
    dtype: Optional[str] = None

    #: The buffer whose memory it gets.
    takes_over: Optional[str] = None


@dataclass(frozen=True)
class PeerGraph:
    """One graph as the other compiler compiled it."""

    #: Our graph that it corresponds to. Null if there is none.
    graph: Optional[str] = None

    #: The function that launches its kernels, as Python.
    wrapper: str = ""

    #: Where `wrapper` launches which kernel.
    launches: list[PeerLaunch] = field(default_factory=list)

    #: Tensors that its kernels read and write.
    buffers: list[PeerBuffer] = field(default_factory=list)

    #: Nodes of its graph that have a counterpart in ours.
    pairs: int = 0


@dataclass(frozen=True)
class PeerKernel:
    """A launch of the other compiler in our terms: `origins` and the nodes of `lines` are nodes of `graph`'s `aten`,
    `nodes` are the other compiler's own buffers."""

    #: The name of its function, unique among generated kernels, or the operator of a library call.
    name: str = ""

    #: Its language. extern is a library call.
    kind: Literal["triton", "cpp", "extern"] = "triton"

    #: The loop nodes that were fused into it. It computes all but `left_out`.
    nodes: list[str] = field(default_factory=list)

    #: Those of `nodes` that only other kernels compute, where they need them.
    left_out: list[str] = field(default_factory=list)

    #: Loop nodes of other kernels that it computes too, rather than read their values.
    computes_again: list[str] = field(default_factory=list)

    #: The nodes of `aten` behind the loop nodes that it computes.
    origins: list[str] = field(default_factory=list)

    #: Its whole text.
    source: str = ""

    #: The language of `source`, for highlighting.
    language: Literal["python", "cpp"] = "python"

    #: Where each line of `source` comes from.
    lines: list[KernelLine] = field(default_factory=list)

    #: Lines of the snippet that it computes for.
    user_lines: list[int] = field(default_factory=list)

    #: Buffers that it reads.
    reads: list[str] = field(default_factory=list)

    #: Buffers that it writes.
    writes: list[str] = field(default_factory=list)

    #: Bytes that it moves. Each read counts once, and each write counts once.
    bytes: int = 0

    #: Floating-point operations. An element of an operation or of a reduction counts as one, a pair of a product as
    #: two. Null if unknown.
    flops: Optional[int] = None

    #: Programs along each axis of the launch. Null for C++ and library calls.
    grid: Optional[list[int]] = None

    #: The settings that it was generated with, such as tile sizes and warps, by name.
    config: dict[str, Any] = field(default_factory=dict)

    #: Registers of a thread, from the assembler.
    registers: Optional[int] = None

    #: Bytes that a thread spills and loads again, from the assembler.
    spills: Optional[int] = None

    #: Shared bytes of a program, from the assembler.
    shared_bytes: Optional[int] = None

    #: Microseconds that the cost model expects.
    predicted_us: Optional[float] = None

    #: Microseconds of the kernel alone on the device: the median of all samples.
    measured_us: Optional[float] = None

    #: How much `measured_us` of another run may differ, in 95 of 100 runs.
    spread_us: Optional[float] = None

    #: 10^9 bytes a second: `bytes` divided by `measured_us`. Null where `steps` has a library call.
    gb_per_s: Optional[float] = None

    #: `gb_per_s` as a percentage of the device's memory bandwidth. Null on a CPU.
    percent_of_peak: Optional[float] = None

    #: Open sizes that a launch passes after the buffers, with their values in the first call.
    sizes: dict[str, Any] = field(default_factory=dict)

    #: The buffers of `writes` whose values before the launch matter.
    updates: list[str] = field(default_factory=list)

    #: The calls that a launch of a product on a CPU consists of, in order.
    steps: list[KernelStep] = field(default_factory=list)

    #: Buffers that are passed as descriptors.
    descriptors: list[TileDescriptor] = field(default_factory=list)

    #: The first kernel of the graph with the same code, except for names.
    same_as: Optional[str] = None

    #: How the call launches a Triton kernel of the snippet, whose text is `source`.
    own: Optional[UserKernel] = None

    #: Where the values of a generated GPU kernel live.
    levels: Optional[KernelLevels] = None

    #: The same kernel for other targets.
    also: list[KernelArtifact] = field(default_factory=list)

    #: Our graph that it belongs to. Null if there is none.
    graph: Optional[str] = None

    #: The form of the kernel, as its name and its loops show it.
    form: Literal[
        "pointwise", "reduction", "persistent reduction", "scan", "template", "foreach", "library call", "loops"
    ] = "loops"

    #: Whether its own nodes have counterparts in ours. If not, `origins` are the nearest nodes that have one, or the
    #: nodes of its lines.
    is_exact: bool = True

    #: Operators that it computes, by their names before decomposition.
    fuses: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PeerLaunch:
    """One line of the other compiler's wrapper that launches."""

    #: The line in the wrapper, counted from 1.
    line: int = 0

    #: Position of the kernel among the other compiler's kernels, counted from 0.
    kernel: int = 0


@dataclass(frozen=True)
class PeerRefusal:
    """Two kernels that the other compiler did not fuse, with the last words that it had for it."""

    #: The graph of ours that both belong to.
    graph: Optional[str] = None

    #: Positions of the two among the other compiler's kernels.
    kernels: tuple[int, int] = (0, 0)

    #: A node of `aten` that the first computes.
    a: str = ""

    #: A node of `aten` that the second computes.
    b: str = ""

    #: The other compiler's own words.
    message: str = ""


@dataclass(frozen=True)
class Recompile:
    """A compilation made because no earlier code of the function fitted the call: the guard that failed, and how."""

    #: The user's function that was compiled again.
    function: str = ""

    #: What the call had and the code did not allow, in a sentence.
    reason: str = ""

    #: The line of the snippet that uses what the condition is about.
    line: Optional[int] = None

    #: The condition that failed, in the newest code.
    guard: Optional[str] = None

    #: What the condition is about, as the snippet writes it.
    subject: Optional[str] = None

    #: What the guard asks for.
    expected: Optional[str] = None

    #: What the call had instead.
    actual: Optional[str] = None

    #: The graph that was made for the new value.
    graph: Optional[str] = None

    #: What the new graph leaves open. The earlier graph did not.
    symbolic: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Refusal:
    """Two kernels that share data and stayed apart. Each of their nodes was refused with one of the other's."""

    #: Positions of the two in `kernels`, in the order of their launches.
    kernels: tuple[int, int] = (0, 0)

    #: Positions in `decisions`, one for each pair of nodes. The first decided: it is about the largest groups of the
    #: two. The others are about fewer of their nodes.
    decisions: list[int] = field(default_factory=list)

    #: Bytes that the first of them could save, at most.
    bytes: int = 0


@dataclass(frozen=True)
class Removed:
    """A node that nothing had to be done for. It is one of `fx` if it is "dead", or a cast or a copy that returns its
    argument, which `aten` does not have; else it is one of `aten`."""

    #: Why nothing had to be done.
    kind: Literal["dead", "common_subexpression", "constant", "view", "cast", "copy"] = "dead"

    #: The node that is gone.
    node: str = ""

    #: The reason in a sentence.
    because: str = ""

    #: Lines of the snippet that it came from.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Replay:
    """Whether the launches of a graph are recorded and replayed as one CUDA graph, and why. What is told of a recording
    is empty where there is none."""

    #: How launches reach the device.
    verdict: Literal["replayed", "one_by_one"] = "replayed"

    #: Id of the reason, as in GET /api/v1/reasons.
    reason: str = ""

    #: The reason in a sentence.
    message: str = ""

    #: The numbers that the reason speaks of, by name.
    numbers: dict[str, Any] = field(default_factory=dict)

    #: The option `cuda_graphs`, as the mode changes it.
    option: Literal["auto", "on", "off"] = "auto"

    #: The library call that prevents a replay.
    node: Optional[str] = None

    #: Lines of the snippet that the library call came from.
    lines: list[int] = field(default_factory=list)

    #: Launches of a call, library calls included.
    launches: int = 0

    #: Library calls among the launches.
    library_calls: int = 0

    #: Launches that were recorded.
    recorded_launches: Optional[int] = None

    #: Library calls that were recorded.
    recorded_library_calls: Optional[int] = None

    #: How each input of a recording is read.
    inputs: list[ReplayInput] = field(default_factory=list)

    #: Bytes that are copied to the recording's memory in each call.
    copied_in_bytes: Optional[int] = None

    #: Bytes that are copied out of it in each call.
    copied_out_bytes: Optional[int] = None

    #: Bytes that a forward graph saves and gives without a copy.
    held_bytes: Optional[int] = None

    #: Bytes of the pool that all recordings on one stream share. torch counts them.
    pool_bytes: Optional[int] = None

    #: How many recordings were made.
    recordings: int = 0

    #: Calls that were replays so far, the timed ones included.
    replays: int = 0

    #: Calls that were launched one by one despite a recording.
    launched_calls: int = 0

    #: Times of a call launch by launch.
    launched: Optional[CallTimes] = None

    #: Times of a replay.
    replayed: Optional[CallTimes] = None

    #: Predicted microseconds of a replay on the host.
    predicted_host_us: Optional[float] = None


@dataclass(frozen=True)
class ReplayInput:
    """An input of a recording: "in_place" is read where the caller has it, "copied" goes to the recording's memory in
    each call, "held" lies in that of the graph that made it, which gives it without a copy."""

    #: The input's name in `aten`.
    name: str = ""

    #: Bytes of all its elements.
    bytes: int = 0

    #: Where a replay reads it.
    way: Literal["in_place", "copied", "held"] = "in_place"


@dataclass(frozen=True)
class Reuse:
    """A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it
    writes the other."""

    #: The buffer that gets the memory.
    buffer: str = ""

    #: The buffer whose memory it was.
    takes_over: str = ""

    #: Bytes that this saves.
    bytes: int = 0

    #: Whether one kernel reads the old buffer while it writes the new one.
    in_place: bool = False


@dataclass(frozen=True)
class Rewrite:
    """Something that is computed better in another way: replaced, or kept and why."""

    #: What was found: attention written by hand, a mask or repeated heads of torch's attention, or in a training step a
    #: sum of rows that hold one number, or the places of maxima.
    what: Literal["attention", "mask", "heads", "one-hot sum", "picked numbers", "pooling places"] = "attention"

    #: Whether it was replaced.
    verdict: Literal["replaced", "kept"] = "replaced"

    #: Id of the reason, as in docs/rewrites.md.
    reason: str = ""

    #: The reason in a sentence.
    message: str = ""

    #: The calls of this graph in which it was found.
    detail: str = ""

    #: What the author can do. Empty if there is nothing.
    remedy: str = ""

    #: The nodes of `fx` that were replaced.
    nodes: list[str] = field(default_factory=list)

    #: Lines of the snippet that it is about.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Round:
    """One round of the scheduler: what it asked, and the fusion that it took as the best; at the end of all, those of
    small kernels that share launches."""

    #: Number of the round, counted from 1.
    number: int = 0

    #: The two units that were fused, and the number of the unit that they became.
    fused: list[tuple[int, int, int]] = field(default_factory=list)

    #: How many pairs the round refused.
    refused: int = 0

    #: How many units there are after the round.
    units: int = 0


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that the forward graph keeps for the backward graph."""

    #: The node of the forward graph that made it.
    node: str = ""

    #: The input of the backward graph that it is.
    input: str = ""

    #: Inputs and outputs are alive anyway. An activation is kept for the backward graph alone.
    kind: Literal["input", "output", "activation"] = "input"

    #: Its sizes, outermost first.
    shape: list[Union[int, str]] = field(default_factory=list)

    #: Its dtype by torch's name.
    dtype: str = ""

    #: Bytes of all its elements.
    bytes: int = 0

    #: Lines of the snippet that made it.
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Score:
    """What the cost model expects of a fusion. Both times are predictions, in microseconds. They have the gaps before
    and after a kernel, and what timing it adds. `predicted_us` of a kernel leaves both out."""

    #: The rule that the fusion would be made by, such as vertical.
    category: str = ""

    #: Bytes that the fusion does not have to read and write.
    bytes_saved: int = 0

    #: How far apart the two are in the order of the loop nodes.
    distance: int = 0

    #: Predicted microseconds of one kernel that holds both.
    fused_us: Optional[float] = None

    #: Predicted microseconds of the two kernels, one after another.
    unfused_us: Optional[float] = None


@dataclass(frozen=True)
class Side:
    """One side of a decision as it was when it was asked about: a group of nodes, or a library call."""

    #: Number of the unit. See `rounds`.
    unit: int = 0

    #: Its loops. Those of a reduction follow the bar.
    space: str = ""

    #: Iterations of all its loops together: a number, or a formula of open sizes.
    iterations: Optional[Union[int, str]] = None

    #: What the side does with the shared buffer.
    does: Literal["writes", "reads", "touches"] = "touches"

    #: Element of the shared buffer, as a formula.
    index: list[IndexTerm] = field(default_factory=list)


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline, its wall time, and how it ended."""

    #: The stage.
    name: str = ""

    #: Its wall time, in milliseconds; of a sweep, what its sizes leave of it.
    ms: float = 0.0

    #: How it ended.
    status: Literal["done", "failed", "skipped"] = "done"

    #: Why it failed or was skipped, in a sentence.
    message: Optional[str] = None


@dataclass(frozen=True)
class Summary:
    """The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. A
    wrong result has no speed: if the report's `wrong_results` name "compiled", `compiled_ms` and `speedup` are null,
    and if they name "peer", `peer_ms` is. An error is null if an output cannot be compared, such as NaN."""

    #: Launches of eager PyTorch.
    eager_kernels: Optional[int] = None

    #: Our launches, library calls included.
    kernels: Optional[int] = None

    #: Launches of TorchInductor. Null if they belong to other calls.
    peer_kernels: Optional[int] = None

    #: Bytes that eager moves.
    eager_bytes: Optional[int] = None

    #: Bytes with one kernel for each node.
    unfused_bytes: Optional[int] = None

    #: Bytes that our kernels and library calls move.
    bytes: Optional[int] = None

    #: Bytes that any compiler must move.
    floor_bytes: Optional[int] = None

    #: Distinct graph breaks.
    graph_breaks: int = 0

    #: Compilations that were made because a guard failed.
    recompiles: int = 0

    #: Milliseconds of eager, the median.
    eager_ms: Optional[float] = None

    #: Milliseconds of compiled, the median.
    compiled_ms: Optional[float] = None

    #: Milliseconds of TorchInductor, the median.
    peer_ms: Optional[float] = None

    #: How many times as fast compiled is as eager.
    speedup: Optional[float] = None

    #: The largest relative error of eager against float64.
    eager_error: Optional[float] = None

    #: The largest relative error of compiled against float64.
    compiled_error: Optional[float] = None

    #: What rounding explains of the output with that error. It is large where terms cancel.
    allowed_error: Optional[float] = None

    #: The answer in a sentence or two. Empty until calls were timed.
    verdict: str = ""


@dataclass(frozen=True)
class SweepResult:
    """One snippet at several sizes, in ascending order; each size is compared with the one before it that has
    kernels."""

    #: The size that was swept.
    name: str = ""

    #: What the snippet becomes at each size, in ascending order.
    sizes: list[SweptSize] = field(default_factory=list)

    #: The pairs. Those that flip come first. See `more_pairs`.
    pairs: list[SweptPair] = field(default_factory=list)

    #: How many pairs are not listed.
    more_pairs: int = 0

    #: Where something flips, in a sentence.
    verdict: str = ""

    #: What the reader must know besides.
    message: Optional[str] = None


@dataclass(frozen=True)
class SweptPair:
    """A pair of nodes, matched by name, with its outcome at each size in order. It is null if there is no such pair."""

    #: The graph that the pair is in.
    graph: str = ""

    #: The first of the two, as a loop node.
    a: str = ""

    #: The second of the two, as a loop node.
    b: str = ""

    #: What became of the pair at each size, in order. Null if that size has no such pair.
    outcomes: list[Optional[Outcome]] = field(default_factory=list)

    #: Whether the outcomes differ.
    flips: bool = False


@dataclass(frozen=True)
class SweptSize:
    """What the snippet becomes at one size. A figure is null if it is not known."""

    #: The value of the size.
    value: int = 0

    #: What went wrong at this size, in a sentence.
    error: Optional[str] = None

    #: Outputs that rounding does not explain. The compiled call then has no time.
    wrong_results: list[WrongResult] = field(default_factory=list)

    #: Generated kernels and library calls.
    launches: Optional[int] = None

    #: Generated kernels.
    kernels: Optional[int] = None

    #: Bytes that all kernels and library calls move.
    bytes: Optional[int] = None

    #: Bytes that any compiler must move.
    floor_bytes: Optional[int] = None

    #: Predicted time of the generated kernels.
    predicted_us: Optional[float] = None

    #: The sum of the generated kernels, each alone.
    measured_us: Optional[float] = None

    #: Milliseconds of an eager call: the median.
    eager_ms: Optional[float] = None

    #: Milliseconds of a compiled call: the median.
    compiled_ms: Optional[float] = None

    #: How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split", "team" or "look_back".
    plans: dict[str, Any] = field(default_factory=dict)

    #: What differs from the size before.
    flips: list[Flip] = field(default_factory=list)

    #: How many flips are not listed.
    more_flips: int = 0


@dataclass(frozen=True)
class Symbol:
    """A size or a number that a graph leaves open, so that one graph serves every value in `range`."""

    #: The symbol, such as s0.
    name: str = ""

    #: What it is, as the snippet writes it: `n`, `x.size(0)`.
    source: str = ""

    #: Its value in the call that was traced.
    value: Optional[str] = None

    #: The values that the graph serves, such as at least 2.
    range: str = ""

    #: The line of the snippet that brings it in.
    line: Optional[int] = None


@dataclass(frozen=True)
class TensorLoads:
    """What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of
    `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them."""

    #: The buffer that is loaded.
    tensor: str = ""

    #: Bytes that come from memory. Each element counts once.
    memory_bytes: int = 0

    #: Bytes of all loads. An element that is loaded again counts again.
    loaded_bytes: int = 0


@dataclass(frozen=True)
class TensorTraffic:
    """What one launch moves of one tensor: each element that it needs is read once and written once."""

    #: The buffer.
    tensor: str = ""

    #: Bytes that are read of it.
    read_bytes: int = 0

    #: Bytes that are written of it.
    written_bytes: int = 0


@dataclass(frozen=True)
class TileDescriptor:
    """A matrix that a kernel gets as a descriptor of its tiles, as Triton's TensorDescriptor; all in elements."""

    #: The buffer that it describes.
    buffer: str = ""

    #: Rows and columns of the matrix.
    shape: tuple[int, int] = (0, 0)

    #: Elements from one row to the next, and from one column to the next.
    strides: tuple[int, int] = (0, 0)

    #: Rows and columns of a tile.
    tile: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class TimingResult:
    """`contestants` are those whose results are right, or could not be checked."""

    #: How times were taken, in sentences.
    method: str = ""

    #: The GPU's name, or cpu.
    device: str = ""

    #: The share of its time in which the process waited for a CPU core.
    waited_share: Optional[float] = None

    #: Whether the L2 cache was cleared before each sample.
    cold_l2: bool = False

    #: The times of each way to run the calls.
    contestants: list[Contestant] = field(default_factory=list)


@dataclass(frozen=True)
class TraceEvent:
    """Something that torch's profiler recorded in one call. The profiler takes time of its own: `timing` has the times
    that a call takes without it."""

    #: "eager", or the name of our graph whose kernels were called.
    contestant: str = ""

    #: What ran: an operator, or a kernel of ours with its number on the page.
    name: str = ""

    #: The thread of the host, or the stream of the GPU.
    track: str = ""

    #: Microseconds since the first event of the call.
    start_us: float = 0.0

    #: Microseconds that it took, the events within it included.
    duration_us: float = 0.0


@dataclass(frozen=True)
class Traffic:
    """The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to
    run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels)."""

    #: Eager PyTorch. Null if the graph cannot be run on shapes alone.
    eager: Optional[ExecutionTraffic] = None

    #: One launch for each loop node and library call.
    unfused: Optional[ExecutionTraffic] = None

    #: Our kernels.
    fused: Optional[ExecutionTraffic] = None

    #: Bytes that any compiler must move.
    floor_bytes: Optional[int] = None

    #: The bytes of the floor, tensor by tensor.
    floor: list[TensorTraffic] = field(default_factory=list)

    #: Each tensor on its way to each of its readers.
    edges: list[EdgeTraffic] = field(default_factory=list)

    #: Bytes of tensors that fusion keeps out of memory.
    saved_written_bytes: int = 0

    #: The sum of `saved_read_bytes` over `edges`.
    saved_read_bytes: int = 0

    #: Bytes that kernels read only to compute values again.
    more_read_bytes: int = 0


@dataclass(frozen=True)
class UserArgument:
    """What a Triton kernel of the snippet's gets in one position."""

    #: The type as Triton writes it, such as *fp32 or i32.
    type: str = ""

    #: Whether an address or a number is a multiple of 16.
    is_divisible: bool = False


@dataclass(frozen=True)
class UserKernel:
    """With what a Triton kernel of the snippet's own is launched. It runs on copies of what it writes to."""

    #: The function with `@triton.jit`, in the kernel's source.
    function: str = ""

    #: The arguments that are no constants, in order.
    arguments: list[UserArgument] = field(default_factory=list)

    #: The constants. A number that is 1 is a constant.
    constants: dict[str, Any] = field(default_factory=dict)

    #: Triton's options of the first configuration.
    launch: dict[str, Any] = field(default_factory=dict)

    #: Why it cannot be compiled by itself, in a sentence.
    problem: Optional[str] = None


@dataclass(frozen=True)
class VectorLoop:
    """An innermost loop of a C++ kernel in the compiler's assembly."""

    #: Its first line in the assembly.
    first: int = 0

    #: Its last line: the jump back.
    last: int = 0

    #: Lines of the kernel's source that are computed in it.
    source_lines: list[int] = field(default_factory=list)

    #: Floating-point instructions on vectors.
    packed: int = 0

    #: Floating-point instructions on one number.
    scalar: int = 0

    #: Bits of the widest vector register in it. 0 if there is none.
    bits: int = 0


@dataclass(frozen=True)
class VectorRemark:
    """What the C++ compiler says of a loop, in its own words."""

    #: The line of the kernel's source.
    line: int = 0

    #: Whether the compiler used vector instructions.
    is_vectorised: bool = False

    #: The compiler's words.
    message: str = ""


@dataclass(frozen=True)
class WhatIf:
    """One thing that an option asked to be otherwise, and what came of it."""

    #: The option that asked.
    option: Literal["force", "forbid", "rules_off", "largest_group", "device_model"] = "force"

    #: What was asked for: two nodes, a rule, a number or a device.
    asked: list[str] = field(default_factory=list)

    #: What became of it.
    outcome: Literal["done", "refused", "no effect", "unknown name"] = "done"

    #: The graph that has the two nodes.
    graph: Optional[str] = None

    #: Id of the reason, as in GET /api/v1/reasons.
    reason: Optional[str] = None

    #: The outcome in a sentence.
    message: str = ""


@dataclass(frozen=True)
class WrongResult:
    """An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph
    there is none."""

    #: The contestant that gave it.
    contestant: Literal["compiled", "peer"] = "compiled"

    #: The graph that gives it. Null for a whole call's result.
    graph: Optional[str] = None

    #: The function that was called.
    entry: Optional[str] = None

    #: Its name: the ATen node of a graph's output, or "the gradient of x".
    output: str = ""

    #: Its relative error against float64. Null if not comparable.
    error: Optional[float] = None

    #: Relative error of eager's output. Null if not comparable.
    eager_error: Optional[float] = None

    #: The largest error that was allowed. Null if not comparable.
    tolerance: Optional[float] = None

    #: Which output is wrong and by how much, in a sentence.
    message: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that came of one exploration. `status` is "running" until the last stage has ended, and "wrong_result"
    where all stages ended and a compiled result is wrong, here or at a size of the sweep. The service sets "cancelled"
    where somebody asked for the end, and "dropped" where nobody waited for it any longer."""

    #: Version of this format.
    version: int = 5

    #: Id of the exploration: a hash of the snippet, the options, the build and the device.
    id: str = ""

    #: How the exploration ended, or that it is running.
    status: Literal[
        "running", "ok", "wrong_result", "user_error", "timeout", "out_of_memory", "crashed", "cancelled", "dropped"
    ] = "running"

    #: The snippet as it was given.
    source: str = ""

    #: The options that were given, by name. Options that are unset are left out.
    options: dict[str, Any] = field(default_factory=dict)

    #: Id of the exploration that this one is compared with.
    based_on: Optional[str] = None

    #: The outcome of each option that asks for other decisions.
    what_if: list[WhatIf] = field(default_factory=list)

    #: The figures of all graphs together.
    summary: Summary = field(default_factory=lambda: Summary())

    #: Versions, device and seed.
    environment: Environment = field(default_factory=lambda: Environment())

    #: The stages that have ended, in order.
    stages: list[Stage] = field(default_factory=list)

    #: What the reader must know about how the snippet was run.
    notes: list[Note] = field(default_factory=list)

    #: Every graph that was captured, in order.
    graphs: list[Graph] = field(default_factory=list)

    #: Every distinct graph break, with or without a graph.
    breaks: list[GraphBreak] = field(default_factory=list)

    #: What Dynamo did, one entry for each compilation.
    compilations: list[Compilation] = field(default_factory=list)

    #: Outputs that rounding does not explain.
    wrong_results: list[WrongResult] = field(default_factory=list)

    #: What TorchInductor made of the same graphs. Null if it was not asked.
    peer: Optional[Peer] = None

    #: Seconds that each phase of compiling took, ours and the peer's, in order.
    compile_phases: list[CompilePhase] = field(default_factory=list)

    #: Times of eager and compiled calls. Null if none were taken.
    timing: Optional[TimingResult] = None

    #: One call of each, as torch's profiler recorded it, if asked for.
    trace: list[TraceEvent] = field(default_factory=list)

    #: Sizes that a sweep of this snippet can name.
    sizes: list[NamedSize] = field(default_factory=list)

    #: The snippet at other sizes, if asked for.
    sweep: Optional[SweepResult] = None

    #: Of an exploration whose source is a kernel: what that was compiled to.
    machine_code: Optional[MachineCode] = None

    #: Training, checked from end to end.
    gradients: list[GradientCheck] = field(default_factory=list)

    #: What the snippet printed, cut at a stated length.
    output: str = ""

    #: What stopped it. Null if nothing did.
    error: Optional[Error] = None

    #: What the service saw of it from outside. Null if it did not run it.
    observed: Optional[Observed] = None


@dataclass(frozen=True)
class Answer:
    """Why two loop nodes are, or are not, in one kernel."""

    #: The graph that has both. If none has, both graphs with a comma between them.
    graph: str = ""

    #: The first loop node's name.
    a: str = ""

    #: The second loop node's name.
    b: str = ""

    #: What became of the two.
    verdict: Literal["fused", "refused", "never considered"] = "fused"

    #: Id of the reason, as GET /api/v1/reasons lists them.
    reason: str = ""

    #: The reason in a sentence, with its numbers.
    message: str = ""

    #: What would have to change for them to fuse. "" if unknown.
    would_fuse_if: str = ""

    #: The kernel that holds both, or the kernels of a and of b.
    kernels: list[str] = field(default_factory=list)

    #: Lines of the snippet that the two come from.
    lines: list[int] = field(default_factory=list)

    #: The decisions that the answer rests on, in their order.
    decisions: list[Decision] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """One figure of both explorations. A value is null if it is not known."""

    #: What the figure is of, in words.
    name: str = ""

    #: How it is known: from shapes, from the device's model, or by a clock.
    kind: Literal["counted", "predicted", "measured"] = "counted"

    #: The unit. "" is a number of things.
    unit: Literal["", "bytes", "us", "ms"] = ""

    #: The device of a predicted or measured figure, or both.
    device: str = ""

    #: Its value in the first exploration.
    before: Optional[float] = None

    #: Its value in the second exploration.
    after: Optional[float] = None

    #: after - before. Null if one is not known, or if the two are of different work.
    change: Optional[float] = None

    #: after / before.
    ratio: Optional[float] = None

    #: Measured, with no measurable difference.
    is_noise: bool = False


@dataclass(frozen=True)
class KernelChange:
    """Kernels that hold the same nodes in both explorations."""

    #: The graph's name in the first exploration, or in the second if only that has it.
    graph: str = ""

    #: Its name in the second. Null if that lacks it.
    graph_after: Optional[str] = None

    #: The loop nodes that these kernels hold, by the first exploration's names.
    nodes: list[str] = field(default_factory=list)

    #: What became of the kernels. Merged is fewer kernels, split is more.
    relation: Literal["same", "split", "merged", "regrouped", "only before", "only after"] = "regrouped"

    #: Their kernels in the first exploration.
    before: KernelSum = field(default_factory=lambda: KernelSum())

    #: Their kernels in the second exploration.
    after: KernelSum = field(default_factory=lambda: KernelSum())


@dataclass(frozen=True)
class KernelSum:
    """Kernels of one exploration together. A sum is null if one of its terms is not known."""

    #: The kernels' names.
    names: list[str] = field(default_factory=list)

    #: Their positions among the graph's kernels, counted from 0.
    places: list[int] = field(default_factory=list)

    #: Bytes that they read and write, counted from shapes.
    bytes: int = 0

    #: Their predicted time in microseconds.
    predicted_us: Optional[float] = None

    #: Their measured time in microseconds.
    measured_us: Optional[float] = None


@dataclass(frozen=True)
class OptionChange:
    """An option that the two explorations have different values of."""

    #: The option's name.
    name: str = ""

    #: Its value in the first. Null if it was not asked for.
    before: Any = None

    #: Its value in the second. Null if it was not asked for.
    after: Any = None


@dataclass(frozen=True)
class Comparison:
    """`before` and `after` are ids; `what_if` says what came of the options of the latter."""

    #: Id of the first exploration.
    before: str = ""

    #: Id of the second exploration.
    after: str = ""

    #: The options that differ.
    options: list[OptionChange] = field(default_factory=list)

    #: The outcome of each option of the second exploration.
    what_if: list[WhatIf] = field(default_factory=list)

    #: Whether both are explorations of the same source.
    is_same_source: bool = True

    #: Other differences that make figures hard to compare.
    differences: list[str] = field(default_factory=list)

    #: Every figure that at least one of the two has.
    figures: list[Figure] = field(default_factory=list)

    #: The kernels that divide the same nodes differently.
    kernels: list[KernelChange] = field(default_factory=list)

    #: Kernels that hold the same nodes in both.
    unchanged: list[KernelChange] = field(default_factory=list)

    #: A compiled result of one of the two is wrong. It has no times.
    is_wrong: bool = False

    #: What is wrong, if anything is, and what changed.
    verdict: str = ""

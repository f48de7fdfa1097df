// Written by scripts/report_types.py from compiler/report/: change it there, and run the script again.

/** A read or a write of one buffer: `index` is the element offset as a formula of the loop variables. */
export interface Access {
  buffer: string;
  index: string;
  bytes: number;
}

/** One text of torch's own trace, as its log prints it; `chars` is its length before it was cut. */
export interface Artefact {
  name: string;
  title: string;
  text: string;
  chars: number;
}

/** A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs). */
export interface Buffer {
  name: string;
  shape: (number | string)[];
  stride: (number | string)[];
  dtype: string;
  bytes: number;
  first: number | null;
  last: number | null;
  fate: "input" | "output" | "register" | "reused" | "in_place" | "allocated" | "dead";
  /** The buffer whose memory it gets. */
  takes_over: string | null;
  note: string | null;
}

/** One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after. */
export interface Compilation {
  id: string;
  function: string | null;
  line: number | null;
  graphs: string[];
  bytecode_before: string;
  bytecode_after: string;
  artefacts: Artefact[];
}

/** Wall time of one way to run the same calls, in milliseconds; every sample is kept. */
export interface Contestant {
  name: "eager" | "compiled" | "peer";
  samples_ms: number[];
  median_ms: number;
  /** 25th percentile. */
  low_ms: number;
  /** 75th percentile. */
  high_ms: number;
  compile_s: number | null;
}

/** One pair that the scheduler looked at: what it decided, and why, with numbers. */
export interface Decision {
  a: string;
  b: string;
  round: number;
  kind: "vertical" | "horizontal";
  verdict: "fused" | "refused";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  message: string;
  numbers: Record<string, unknown>;
  score: Score | null;
  lines: number[];
  /** The buffer that the verdict is about. */
  shared: string | null;
  shared_bytes: number | null;
  /** That of `a`, then that of `b`. */
  sides: Side[];
  /** Whether both index expressions are over the same loops. */
  same_loops: boolean;
  /** Of a fusion: the loops that were given up, by those that were kept. */
  change: string;
  /** Of a fusion of two units: the number of what they became. */
  makes: number | null;
  /** A change under which the rules do fuse the two: it was tried. */
  would_fuse_if: string;
}

/** One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that. */
export interface EdgeTraffic {
  tensor: string;
  /** The loop node; None for an input or a constant. */
  producer: string | null;
  consumer: string;
  written_bytes: number;
  read_bytes: number;
  /** Of `read_bytes`, what the reader's kernel does not read for it. */
  saved_read_bytes: number;
  fate: "memory" | "register" | "read_saved" | "recomputed" | "shared_read";
}

export interface Environment {
  python: string;
  torch: string;
  triton: string | null;
  device: string;
  device_name: string;
  target: string;
  /** The device whose model decided and predicted. */
  decides_for: string;
  driver: string | null;
  clocks: Record<string, unknown> | null;
  seed: number;
  commit: string | null;
  compiler: string;
  threads: number | null;
}

/** What stopped an exploration. `line` is the user's own line, counted from 1, where one is known. */
export interface Error {
  type: string;
  message: string;
  line: number | null;
  stage: string | null;
  /** What the reader can do about it. */
  hint: string | null;
  traceback: string | null;
}

/** What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`, and `library_bytes` that over the library calls among them, which move it at least. */
export interface ExecutionTraffic {
  bytes: number;
  library_bytes: number;
  launches: LaunchTraffic[];
}

/** Something that the compiler does otherwise than at the size before. */
export interface Flip {
  kind: "verdict" | "kernels" | "choice";
  /** The graph that it is in; of a count: all of them. */
  graph: string | null;
  /** The pair, as "a + b"; the kernel whose plan it is; or "kernels". */
  about: string;
  before: string;
  after: string;
}

/** Whether a convolution takes the products and sums of each channel, and the ReLU, that follow it. */
export interface FoldingDecision {
  verdict: "folded" | "kept";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  message: string;
  /** Of `aten`: the convolution first, the ReLU last. */
  nodes: string[];
  /** The pass over the result that is spared. */
  predicted_saved_us: number;
  /** What it takes to compute the filter in each call. */
  predicted_filter_us: number;
  lines: number[];
}

/** A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet. */
export interface FxNode {
  name: string;
  op: string;
  target: string;
  args: string[];
  text: string;
  shape: (number | string)[] | null;
  stride: (number | string)[] | null;
  dtype: string | null;
  bytes: number | null;
  lines: number[];
  module: string | null;
  dead: boolean;
}

/** One result or gradient of a whole trained function: errors of eager and compiled against it in float64. */
export interface GradientCheck {
  entry: string;
  /** "the result", or "the gradient of x". */
  name: string;
  eager_error: number;
  compiled_error: number;
  /** Whether rounding explains the error: no worse than eager, or within dtype. */
  is_correct: boolean;
}

/** One captured graph, from FX to kernels. */
export interface Graph {
  name: string;
  function: string | null;
  phase: "inference" | "forward" | "backward";
  /** The backward graph of a forward graph, and the other way. */
  partner: string | null;
  calls: number;
  fx: FxNode[];
  aten: FxNode[];
  guards: Guard[];
  /** The graph break that ended this graph, if one did. */
  breaks: GraphBreak[];
  /** Why this graph was compiled again, if it was. */
  recompiles: Recompile[];
  /** What this graph leaves open: it serves every value. */
  symbols: Symbol[];
  /** Of a backward graph: what the forward saved for it. */
  saved: SavedTensor[];
  /** Of a backward graph: nodes of the forward graph that it computes again, not saved. */
  recomputed: string[];
  /** What was replaced between `fx` and `aten`, or nearly was. */
  rewrites: Rewrite[];
  /** What became no loop, since there was nothing to do. */
  removed: Removed[];
  /** What was decided of convolutions, before `loops`. */
  layouts: LayoutDecision[];
  /** What convolutions took of what follows them. */
  foldings: FoldingDecision[];
  loops: LoopNode[];
  /** In a large graph only the weightiest: see `more_decisions`. */
  decisions: Decision[];
  /** Those that are not told at length: both units, the round, the reason. */
  more_decisions: [number, number, number, string][];
  /** Pairs of kernels that run over as many iterations and leave no decision, being far apart. */
  pairs_not_asked: number;
  rounds: Round[];
  buffers: Buffer[];
  memory: Memory | null;
  traffic: Traffic | null;
  kernels: Kernel[];
  /** The generated kernels one after another; what library calls take is not foreseen. */
  predicted_us: number | null;
  wrapper: string;
  eager_kernels: number | null;
  eager_bytes: number | null;
  floor_bytes: number | null;
}

/** Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line. */
export interface GraphBreak {
  /** Dynamo's explanation, its first sentence. */
  reason: string;
  line: number | null;
  /** Dynamo's own name of it. */
  kind: string | null;
  /** Dynamo's own hints. */
  hint: string | null;
  /** Id of the kind of break, as in docs/graph_breaks.md. */
  category: string;
  /** The kind of break in words. */
  title: string;
  /** What would keep the graph whole, in one sentence. */
  remedy: string;
  /** The page of PyTorch's documentation on it. */
  url: string | null;
  /** The graphs that it ended. */
  before: string[];
  /** The graphs that ran next, where tracing was taken up again. */
  after: string[];
  /** How often tracing met it. */
  count: number;
}

/** A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms. */
export interface Guard {
  kind: string;
  name: string;
  expression: string;
  lines: number[];
  /** What it is about, as the snippet writes it: `n`, `x.size(0)`. */
  subject: string;
  /** The change of the input that fails it, such as `n` other than 6. */
  fails_when: string;
}

/** One term of an index expression with its sign: `512 * x0`, ` + x1`. `differs` marks what the other side of the decision does not have. */
export interface IndexTerm {
  text: string;
  differs: boolean;
}

/** What is launched: one generated function or one library call. */
export interface Kernel {
  name: string;
  kind: "triton" | "cpp" | "extern";
  nodes: string[];
  origins: string[];
  source: string;
  language: "python" | "cpp";
  lines: KernelLine[];
  user_lines: number[];
  reads: string[];
  writes: string[];
  bytes: number;
  flops: number | null;
  grid: number[] | null;
  config: Record<string, unknown>;
  registers: number | null;
  spills: number | null;
  shared_bytes: number | null;
  predicted_us: number | null;
  measured_us: number | null;
  gb_per_s: number | null;
  percent_of_peak: number | null;
  /** Of a generated kernel, where the target is a GPU. */
  levels: KernelLevels | null;
  /** The same kernel for other targets. */
  also: KernelArtifact[];
}

/** The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel. */
export interface KernelArtifact {
  language: "triton" | "cpp" | "ptx";
  target: string;
  source: string;
  lines: KernelLine[];
  registers: number | null;
  spills: number | null;
  shared_bytes: number | null;
  config: Record<string, unknown>;
  /** How this rendering was checked, and with what result. */
  check: string | null;
  max_error: number | null;
}

/** Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured. */
export interface KernelLevels {
  target: string;
  plan: "pointwise" | "persistent" | "looped" | "split" | "team" | "batch" | "product";
  programs: number;
  /** Of one program. */
  threads: number;
  /** Elements of one program along each axis; of one step in r. */
  tile: Record<string, unknown>;
  /** Over the reduction loops; 0 without any, 1 where all of r stays in registers. */
  passes: number;
  loads: TensorLoads[];
  /** Predicted: of what later passes load again, what the cache holds no more. */
  missed_bytes: number;
  /** Values of nodes that stay in registers and reach no memory. */
  kept: string[];
  /** Values that the threads of a program combine, through shuffles and shared memory. */
  combined: string[];
}

/** Where one line of a kernel comes from: `line` counts from 1 in the kernel's source. */
export interface KernelLine {
  line: number;
  nodes: string[];
  user_lines: number[];
}

/** What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that eager made the call for. */
export interface LaunchTraffic {
  name: string;
  node: string | null;
  bytes: number;
  tensors: TensorTraffic[];
  lines: number[];
  /** What a library call may move besides: `bytes` is then what it moves at least. */
  unseen: string;
}

/** A copy into other strides at the edge of a region: `buffer` is made of `source` for `reader`. `bytes` are read and written by a kernel of its own; what is fused into the loop that makes `source` moves fewer. */
export interface LayoutConversion {
  buffer: string;
  source: string;
  what: "image" | "gradient" | "filter" | "argument" | "output";
  reader: string;
  bytes: number;
}

/** How tensors lie around convolutions that hang together: channels-last, or as eager has them, and why. */
export interface LayoutDecision {
  verdict: "channels_last" | "kept";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  message: string;
  /** Nodes of `aten`. */
  convolutions: string[];
  numbers: Record<string, unknown>;
  /** Tensors as in eager: the library's calls, and the passes that folding would spare. */
  predicted_kept_us: number | null;
  /** Channels-last: the library's calls, conversions, and filters that are folded. */
  predicted_moved_us: number | null;
  /** Those that are channels-last, or would be if it paid. */
  buffers: string[];
  conversions: LayoutConversion[];
  lines: number[];
}

/** A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line. */
export interface LoopNode {
  name: string;
  kind: "pointwise" | "reduction" | "scan" | "scatter" | "extern" | "view";
  sizes: (number | string)[];
  reduction_sizes: (number | string)[];
  dtype: string | null;
  shape: (number | string)[] | null;
  body: string[];
  reads: Access[];
  writes: Access[];
  /** FX nodes of `aten` that it came from. */
  origins: string[];
  lines: number[];
  dead: boolean;
  /** True for an ATen call that we have no lowering for. */
  fallback: boolean;
}

/** What the buffers of a graph take, its inputs not counted, in bytes. */
export interface Memory {
  peak_bytes: number;
  /** Our kernels in the order in which they were written. */
  unordered_peak_bytes: number;
  /** Every buffer of our kernels in memory of its own, none let go. */
  without_reuse_bytes: number;
  reuses: Reuse[];
  unfused_peak_bytes: number;
  unfused_without_reuse_bytes: number;
  unfused_reuses: Reuse[];
  /** What is alive while each kernel runs, and after the last. */
  live_bytes: number[];
  /** The same without fusion, node by node. */
  unfused_live_bytes: number[];
  /** The plan without fusion; `first` and `last` are positions among the nodes not dead. */
  unfused_buffers: Buffer[];
}

/** A size of the snippet that a sweep can name, with its value as written. */
export interface NamedSize {
  name: string;
  value: number;
  lines: number[];
}

/** Something that the reader must know about how the snippet was run (an input that was chosen, a device that was replaced, a stage that does not apply). `line` is a line of the snippet. */
export interface Note {
  message: string;
  line: number | null;
}

/** What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it by the fusion of others. */
export interface Outcome {
  verdict: "fused" | "refused" | "never considered";
  reason: string | null;
  together: boolean;
}

/** What TorchInductor made of the same graphs. */
export interface Peer {
  name: string;
  kernels: Kernel[];
  message: string | null;
}

/** A compilation made because no earlier code of the function fitted the call: the guard that failed, and how. */
export interface Recompile {
  function: string;
  reason: string;
  line: number | null;
  /** The condition that failed, of the newest code there was. */
  guard: string | null;
  /** What it was about, as the snippet writes it. */
  subject: string | null;
  expected: string | null;
  actual: string | null;
  /** The graph that was made for the new value. */
  graph: string | null;
  /** What the new graph leaves open and the earlier one did not. */
  symbolic: string[];
}

/** A node that nothing had to be done for. It is one of `fx` where it is "dead", of `aten` otherwise. */
export interface Removed {
  kind: "dead" | "common_subexpression" | "constant" | "view" | "cast" | "copy";
  node: string;
  because: string;
  lines: number[];
}

/** A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it writes the other. */
export interface Reuse {
  buffer: string;
  takes_over: string;
  bytes: number;
  in_place: boolean;
}

/** Something written by hand that a fused operator of torch does better: replaced, or kept and why. */
export interface Rewrite {
  what: "attention";
  verdict: "replaced" | "kept";
  /** Id of the reason, as in docs/rewrites.md. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** What exactly it was found in, in this graph. */
  detail: string;
  /** What the author can do, where there is something. */
  remedy: string;
  /** The nodes of `fx` that were replaced. */
  nodes: string[];
  lines: number[];
}

/** One round of the scheduler: what it asked, and the fusion that it took as the best; at the end of all, those of small kernels that share launches. */
export interface Round {
  number: number;
  /** The two units, and the number of what they became. */
  fused: [number, number, number][];
  refused: number;
  /** How many units there are after it. */
  units: number;
}

/** A tensor that the forward graph keeps for the backward graph. */
export interface SavedTensor {
  /** The node of the forward graph that made it. */
  node: string;
  /** The input of the backward graph that it is. */
  input: string;
  /** An input or an output of the forward graph lives anyway; an activation is kept for this alone. */
  kind: "input" | "output" | "activation";
  shape: (number | string)[];
  dtype: string;
  bytes: number;
  lines: number[];
}

/** What the cost model expects of a fusion. Both times are predictions, in microseconds. */
export interface Score {
  category: string;
  bytes_saved: number;
  distance: number;
  fused_us: number | null;
  unfused_us: number | null;
}

/** One side of a decision as it was when it was asked about: a group of nodes, or a library call. */
export interface Side {
  /** Number of the unit; see `rounds`. */
  unit: number;
  /** Its loops, those of a reduction after the bar; empty: a library call. */
  space: string;
  iterations: number | string | null;
  does: "writes" | "reads" | "touches";
  /** The element of the shared buffer, by its loops. */
  index: IndexTerm[];
}

/** One step of the pipeline, its wall time, and how it ended. */
export interface Stage {
  name: string;
  ms: number;
  status: "done" | "failed" | "skipped";
  message: string | null;
}

/** The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. */
export interface Summary {
  eager_kernels: number | null;
  kernels: number | null;
  peer_kernels: number | null;
  eager_bytes: number | null;
  /** One kernel for each loop node and library call. */
  unfused_bytes: number | null;
  bytes: number | null;
  floor_bytes: number | null;
  graph_breaks: number;
  recompiles: number;
  eager_ms: number | null;
  compiled_ms: number | null;
  peer_ms: number | null;
  speedup: number | null;
  eager_error: number | null;
  compiled_error: number | null;
  verdict: string;
}

/** One snippet at several sizes, in ascending order; each size is compared with the one before it that has kernels. */
export interface SweepResult {
  name: string;
  sizes: SweptSize[];
  /** Those that flip first; see `more_pairs`. */
  pairs: SweptPair[];
  /** How many pairs are not listed. */
  more_pairs: number;
  verdict: string;
  message: string | null;
}

/** A pair of nodes, matched by name, with its outcome at each size in order; null where there is no such pair. */
export interface SweptPair {
  graph: string;
  a: string;
  b: string;
  outcomes: (Outcome | null)[];
  flips: boolean;
}

/** What the snippet becomes at one size. A figure is null where it is not known. */
export interface SweptSize {
  value: number;
  /** What went wrong at this size, in a sentence. */
  error: string | null;
  /** Generated kernels and library calls. */
  launches: number | null;
  /** The generated ones among them. */
  kernels: number | null;
  bytes: number | null;
  floor_bytes: number | null;
  /** The generated kernels, one after another. */
  predicted_us: number | null;
  /** The generated kernels together, each on its own. */
  measured_us: number | null;
  eager_ms: number | null;
  compiled_ms: number | null;
  /** How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split" or "team". */
  plans: Record<string, unknown>;
  flips: Flip[];
  /** How many flips are not listed. */
  more_flips: number;
}

/** A size or a number that a graph leaves open, so that one graph serves every value in `range`. */
export interface Symbol {
  name: string;
  /** What it is, as the snippet writes it: `n`, `x.size(0)`. */
  source: string;
  /** Its value in the call that was traced. */
  value: string | null;
  range: string;
  line: number | null;
}

/** What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them. */
export interface TensorLoads {
  tensor: string;
  memory_bytes: number;
  loaded_bytes: number;
}

/** What one launch moves of one tensor: each element that it needs is read once and written once. */
export interface TensorTraffic {
  tensor: string;
  read_bytes: number;
  written_bytes: number;
}

export interface TimingResult {
  method: string;
  device: string;
  cold_l2: boolean;
  contestants: Contestant[];
}

/** The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels). */
export interface Traffic {
  /** Missing where the graph cannot be run on shapes alone. */
  eager: ExecutionTraffic | null;
  unfused: ExecutionTraffic | null;
  fused: ExecutionTraffic | null;
  floor_bytes: number | null;
  floor: TensorTraffic[];
  edges: EdgeTraffic[];
  /** Of tensors that fusion keeps out of memory. */
  saved_written_bytes: number;
  /** Of `edges` whose reader needs no read of its own. */
  saved_read_bytes: number;
  /** What kernels read that their nodes alone would not: to compute values again. */
  more_read_bytes: number;
}

/** One thing that an option asked to be otherwise, and what came of it. */
export interface WhatIf {
  option: "force" | "forbid" | "rules_off" | "largest_group" | "device_model";
  /** The two nodes, the rule, the number or the device, as they were asked for. */
  asked: string[];
  outcome: "done" | "refused" | "no effect" | "unknown name";
  /** The graph that has the two nodes. */
  graph: string | null;
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string | null;
  message: string;
}

/** Everything that came of one exploration. `status` is "running" until the last stage has ended. */
export interface Report {
  version: number;
  id: string;
  status: "running" | "ok" | "user_error" | "timeout" | "out_of_memory" | "crashed" | "cancelled";
  source: string;
  options: Record<string, unknown>;
  /** Id of the exploration that this one is compared with. */
  based_on: string | null;
  /** What came of each option that asks for other decisions. */
  what_if: WhatIf[];
  summary: Summary;
  environment: Environment;
  stages: Stage[];
  notes: Note[];
  graphs: Graph[];
  /** Every distinct graph break, with or without a graph. */
  breaks: GraphBreak[];
  /** What Dynamo did, one entry a compilation. */
  compilations: Compilation[];
  peer: Peer | null;
  timing: TimingResult | null;
  /** Sizes that a sweep of this snippet can name. */
  sizes: NamedSize[];
  /** The snippet at other sizes, where that was asked for. */
  sweep: SweepResult | null;
  /** Training, checked from end to end. */
  gradients: GradientCheck[];
  /** What the snippet printed, cut at a stated length. */
  output: string;
  error: Error | null;
}

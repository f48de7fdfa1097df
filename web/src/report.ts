// Written by scripts/report_types.py from compiler/report.py: change it there, and run the script again.

/** A read or a write of one buffer: `index` is the element offset as a formula of the loop variables. */
export interface Access {
  buffer: string;
  index: string;
  bytes: number;
}

/** A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs). */
export interface Buffer {
  name: string;
  shape: number[];
  stride: number[];
  dtype: string;
  bytes: number;
  first: number | null;
  last: number | null;
  fate: "input" | "output" | "register" | "reused" | "in_place" | "allocated" | "dead";
  note: string | null;
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
}

export interface Environment {
  python: string;
  torch: string;
  triton: string | null;
  device: string;
  device_name: string;
  target: string;
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

/** A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet. */
export interface FxNode {
  name: string;
  op: string;
  target: string;
  args: string[];
  text: string;
  shape: number[] | null;
  stride: number[] | null;
  dtype: string | null;
  bytes: number | null;
  lines: number[];
  module: string | null;
  dead: boolean;
}

/** One captured graph, from FX to kernels. */
export interface Graph {
  name: string;
  function: string | null;
  phase: "inference" | "forward" | "backward";
  calls: number;
  fx: FxNode[];
  aten: FxNode[];
  guards: Guard[];
  /** The graph break that ended this graph, if one did. */
  breaks: GraphBreak[];
  /** Why this graph was compiled again, if it was. */
  recompiles: Recompile[];
  loops: LoopNode[];
  decisions: Decision[];
  buffers: Buffer[];
  kernels: Kernel[];
  wrapper: string;
  eager_kernels: number | null;
  eager_bytes: number | null;
  floor_bytes: number | null;
}

export interface GraphBreak {
  reason: string;
  line: number | null;
  kind: string | null;
  hint: string | null;
}

export interface Guard {
  kind: string;
  name: string;
  expression: string;
  lines: number[];
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

/** Where one line of a kernel comes from: `line` counts from 1 in the kernel's source. */
export interface KernelLine {
  line: number;
  nodes: string[];
  user_lines: number[];
}

/** A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line. */
export interface LoopNode {
  name: string;
  kind: "pointwise" | "reduction" | "extern" | "view";
  sizes: number[];
  reduction_sizes: number[];
  dtype: string | null;
  shape: number[] | null;
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

/** Something that the reader must know about how the snippet was run (an input that was chosen, a device that was replaced, a stage that does not apply). `line` is a line of the snippet. */
export interface Note {
  message: string;
  line: number | null;
}

/** What TorchInductor made of the same graphs. */
export interface Peer {
  name: string;
  kernels: Kernel[];
  message: string | null;
}

export interface Recompile {
  function: string;
  reason: string;
  line: number | null;
}

/** What the cost model expects of a fusion. Both times are predictions. */
export interface Score {
  category: string;
  bytes_saved: number;
  distance: number;
  fused_us: number;
  unfused_us: number;
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

export interface TimingResult {
  method: string;
  device: string;
  cold_l2: boolean;
  contestants: Contestant[];
}

/** Everything that came of one exploration. `status` is "running" until the last stage has ended. */
export interface Report {
  version: number;
  id: string;
  status: "running" | "ok" | "user_error" | "timeout" | "out_of_memory" | "crashed" | "cancelled";
  source: string;
  options: Record<string, unknown>;
  summary: Summary;
  environment: Environment;
  stages: Stage[];
  notes: Note[];
  graphs: Graph[];
  peer: Peer | null;
  timing: TimingResult | null;
  /** What the snippet printed, cut at a stated length. */
  output: string;
  error: Error | null;
}

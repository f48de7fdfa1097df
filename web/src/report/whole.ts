// Written by scripts/report_types.py from compiler/report/whole.py: change it there, and run the script again.

import type { Compilation, FxNode, GradientCheck, GraphBreak, Guard, Recompile, Rewrite, SavedTensor, Symbol } from "./capture";
import type { Decision, FoldingDecision, LayoutDecision, PaddingDecision, Refusal, Round, WhatIf } from "./decisions";
import type { Kernel } from "./kernels";
import type { LoopNode, Removed } from "./loops";
import type { MachineCode } from "./machine_code";
import type { Buffer, Memory } from "./memory";
import type { Observed } from "./observed";
import type { Peer } from "./peers";
import type { Replay } from "./replays";
import type { NamedSize, SweepResult } from "./sweep";
import type { CompilePhase, OutputErrors, TimingResult, TraceEvent, WrongResult } from "./timings";
import type { Traffic } from "./traffic";

/** What a result depends on besides the snippet and the options. */
export interface Environment {
  /** Version of Python. */
  python: string;
  /** Version of PyTorch. */
  torch: string;
  /** Version of Triton. Null if Triton is not installed. */
  triton: string | null;
  /** Where tensors were: cpu or cuda. */
  device: string;
  /** The device's name as its driver or the kernel gives it. */
  device_name: string;
  /** What Triton kernels were generated for, such as sm_90. */
  target: string;
  /** The device whose model decided and predicted. */
  decides_for: string;
  /** The device that ran. If the model of another device decided, that device follows. */
  peaks: Peak[];
  /** Version of the GPU's driver. Null on a CPU. */
  driver: string | null;
  /** Clocks of the GPU in MHz, by name. Null if they were not read. */
  clocks: Record<string, unknown> | null;
  /** The seed that was set before the snippet ran. */
  seed: number;
  /** Commit of the compiler's sources. Null if unknown. */
  commit: string | null;
  /** Version of Fusionscope. */
  compiler: string;
  /** Threads that a CPU computed with. Null on a GPU. */
  threads: number | null;
}

/** What stopped an exploration. `line` is the user's own line, counted from 1, where one is known. */
export interface Error {
  /** The type of the exception, or a name of ours such as TimeLimit. */
  type: string;
  /** What went wrong, in its own words. */
  message: string;
  /** The line of the snippet, counted from 1. Null if unknown. */
  line: number | null;
  /** The stage that it stopped. */
  stage: string | null;
  /** What the reader can do about it. */
  hint: string | null;
  /** Frames of the snippet. If the defect is ours, frames of the compiler, without the snippet's text. */
  traceback: string | null;
}

/** One captured graph, from FX to kernels. */
export interface Graph {
  /** Its name, such as graph_0, or graph_0_backward for its backward graph. */
  name: string;
  /** The user's function that it is a part of. */
  function: string | null;
  /** Whether the graph only computes, or is one half of a training step. */
  phase: "inference" | "forward" | "backward";
  /** The backward graph of a forward graph, or the reverse. */
  partner: string | null;
  /** How often the snippet ran the graph. */
  calls: number;
  /** Where the kernels run: cpu or cuda. A graph of CPU tensors runs on the CPU, also beside a GPU. */
  device: string;
  /** The graph as Dynamo captured it. */
  fx: FxNode[];
  /** The graph after AOTAutograd: functional and decomposed, and forward or backward alone. */
  aten: FxNode[];
  /** Conditions under which the graph may be used. */
  guards: Guard[];
  /** The graph break that ended this graph, if one did. */
  breaks: GraphBreak[];
  /** Why this graph was compiled again, if it was. */
  recompiles: Recompile[];
  /** Sizes and numbers that the graph leaves open. */
  symbols: Symbol[];
  /** What the forward graph saved for this backward graph. */
  saved: SavedTensor[];
  /** Nodes of the forward graph that this backward graph computes again. */
  recomputed: string[];
  /** What was replaced between `fx` and `aten`, or nearly was. */
  rewrites: Rewrite[];
  /** Nodes that became no loop: there was nothing to do. */
  removed: Removed[];
  /** How tensors lie around convolutions. */
  layouts: LayoutDecision[];
  /** What convolutions took over from later nodes. */
  foldings: FoldingDecision[];
  /** Products whose sizes are not divisible by eight. */
  paddings: PaddingDecision[];
  /** The loop nodes before fusion. */
  loops: LoopNode[];
  /** The scheduler's decisions. A large graph lists the weightiest ones. */
  decisions: Decision[];
  /** Decisions without their details: both units, the round and the reason. */
  more_decisions: [number, number, number, string][];
  /** Pairs of kernels with as many iterations that were not asked about, because they are far apart. */
  pairs_not_asked: number;
  /** What the scheduler did, round by round. */
  rounds: Round[];
  /** The tensors of the graph, and what becomes of each. */
  buffers: Buffer[];
  /** The memory that the buffers take. */
  memory: Memory | null;
  /** The bytes that the graph moves. */
  traffic: Traffic | null;
  /** What is launched, in order. */
  kernels: Kernel[];
  /** The pairs of kernels that were not fused. Those with most bytes at stake are first. */
  refusals: Refusal[];
  /** Predicted time of the generated kernels in a row, with the gaps between them. */
  predicted_us: number | null;
  /** Microseconds of one call of the graph. It was measured beside each kernel alone. */
  call_us: number | null;
  /** Why the measured times of the kernels are not reliable: they do not add up to the time of the call. The kernels then have no bandwidth. */
  disturbed: string | null;
  /** Errors of the outputs against float64, for one seed, on the first inputs. */
  errors: OutputErrors[];
  /** The function that launches the kernels, as Python. */
  wrapper: string;
  /** Whether the launches are replayed as one CUDA graph. */
  replay: Replay | null;
  /** Launches of eager PyTorch for the same graph. */
  eager_kernels: number | null;
  /** Bytes that eager PyTorch moves for the same graph. */
  eager_bytes: number | null;
  /** Bytes that any compiler must move. */
  floor_bytes: number | null;
}

/** Something that the reader must know about how the snippet was run (an input that was chosen, a device that was replaced, a stage that does not apply). `line` is a line of the snippet. */
export interface Note {
  /** The note, in sentences. */
  message: string;
  /** The line of the snippet that it is about. */
  line: number | null;
}

/** What a device does at most, by the record that the compiler has of it. */
export interface Peak {
  /** The device's name. */
  device: string;
  /** 10^9 bytes a second that a large kernel reads and writes. */
  gb_per_s: number;
  /** 10^9 float32 operations a second; a fused multiply-add is two. */
  gflop_per_s: number;
  /** 10^9 operations a second of the tensor cores on half types. Null if there are none. */
  half_product_gflop_per_s: number | null;
  /** Whether `gb_per_s` was measured on such a device. Otherwise it is assumed. The number of operations is from the data sheet, or assumed for a CPU. */
  is_measured: boolean;
}

/** One step of the pipeline, its wall time, and how it ended. */
export interface Stage {
  /** The stage. */
  name: string;
  /** Its wall time, in milliseconds; of a sweep, what its sizes leave of it. */
  ms: number;
  /** How it ended. */
  status: "done" | "failed" | "skipped";
  /** Why it failed or was skipped, in a sentence. */
  message: string | null;
}

/** The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. A wrong result has no speed: if the report's `wrong_results` name "compiled", `compiled_ms` and `speedup` are null, and if they name "peer", `peer_ms` is. An error is null if an output cannot be compared, such as NaN. */
export interface Summary {
  /** Launches of eager PyTorch. */
  eager_kernels: number | null;
  /** Our launches, library calls included. */
  kernels: number | null;
  /** Launches of TorchInductor. Null if they belong to other calls. */
  peer_kernels: number | null;
  /** Bytes that eager moves. */
  eager_bytes: number | null;
  /** Bytes with one kernel for each node. */
  unfused_bytes: number | null;
  /** Bytes that our kernels and library calls move. */
  bytes: number | null;
  /** Bytes that any compiler must move. */
  floor_bytes: number | null;
  /** Distinct graph breaks. */
  graph_breaks: number;
  /** Compilations that were made because a guard failed. */
  recompiles: number;
  /** Milliseconds of eager, the median. */
  eager_ms: number | null;
  /** Milliseconds of compiled, the median. */
  compiled_ms: number | null;
  /** Milliseconds of TorchInductor, the median. */
  peer_ms: number | null;
  /** How many times as fast compiled is as eager. */
  speedup: number | null;
  /** The largest relative error of eager against float64. */
  eager_error: number | null;
  /** The largest relative error of compiled against float64. */
  compiled_error: number | null;
  /** What rounding explains of the output with that error. It is large where terms cancel. */
  allowed_error: number | null;
  /** The answer in a sentence or two. Empty until calls were timed. */
  verdict: string;
}

/** Everything that came of one exploration. `status` is "running" until the last stage has ended, and "wrong_result" where all stages ended and a compiled result is wrong, here or at a size of the sweep. The service sets "cancelled" where somebody asked for the end, and "dropped" where nobody waited for it any longer. */
export interface Report {
  /** Version of this format. */
  version: number;
  /** Id of the exploration: a hash of the snippet, the options, the build and the device. */
  id: string;
  /** How the exploration ended, or that it is running. */
  status: "running" | "ok" | "wrong_result" | "user_error" | "timeout" | "out_of_memory" | "crashed" | "cancelled" | "dropped";
  /** The snippet as it was given. */
  source: string;
  /** The options that were given, by name. Options that are unset are left out. */
  options: Record<string, unknown>;
  /** Id of the exploration that this one is compared with. */
  based_on: string | null;
  /** The outcome of each option that asks for other decisions. */
  what_if: WhatIf[];
  /** The figures of all graphs together. */
  summary: Summary;
  /** Versions, device and seed. */
  environment: Environment;
  /** The stages that have ended, in order. */
  stages: Stage[];
  /** What the reader must know about how the snippet was run. */
  notes: Note[];
  /** Every graph that was captured, in order. */
  graphs: Graph[];
  /** Every distinct graph break, with or without a graph. */
  breaks: GraphBreak[];
  /** What Dynamo did, one entry for each compilation. */
  compilations: Compilation[];
  /** Outputs that rounding does not explain. */
  wrong_results: WrongResult[];
  /** What TorchInductor made of the same graphs. Null if it was not asked. */
  peer: Peer | null;
  /** Seconds that each phase of compiling took, ours and the peer's, in order. */
  compile_phases: CompilePhase[];
  /** Times of eager and compiled calls. Null if none were taken. */
  timing: TimingResult | null;
  /** One call of each, as torch's profiler recorded it, if asked for. */
  trace: TraceEvent[];
  /** Sizes that a sweep of this snippet can name. */
  sizes: NamedSize[];
  /** The snippet at other sizes, if asked for. */
  sweep: SweepResult | null;
  /** Of an exploration whose source is a kernel: what that was compiled to. */
  machine_code: MachineCode | null;
  /** Training, checked from end to end. */
  gradients: GradientCheck[];
  /** What the snippet printed, cut at a stated length. */
  output: string;
  /** What stopped it. Null if nothing did. */
  error: Error | null;
  /** What the service saw of it from outside. Null if it did not run it. */
  observed: Observed | null;
}

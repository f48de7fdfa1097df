// Written by scripts/report_types.py from compiler/report/whole.py: change it there, and run the script again.

import type { Compilation, FxNode, GradientCheck, GraphBreak, Guard, Recompile, Rewrite, SavedTensor, Symbol } from "./capture";
import type { Decision, FoldingDecision, LayoutDecision, PaddingDecision, Round, WhatIf } from "./decisions";
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
  /** Version of Triton; null where it is not installed. */
  triton: string | null;
  /** Where tensors were: cpu or cuda. */
  device: string;
  /** The device's name as its driver or the kernel gives it. */
  device_name: string;
  /** What Triton kernels were generated for, such as sm_90. */
  target: string;
  /** The device whose model decided and predicted. */
  decides_for: string;
  /** Of the device that ran, and then of the one whose model decided, where that is another. */
  peaks: Peak[];
  /** Version of the GPU's driver; null on a CPU. */
  driver: string | null;
  /** Clocks of the GPU in MHz, by name, where they were read. */
  clocks: Record<string, unknown> | null;
  /** The seed that was set before the snippet ran. */
  seed: number;
  /** Commit of the compiler's sources, where it is known. */
  commit: string | null;
  /** Version of Fusionscope. */
  compiler: string;
  /** Threads that a CPU computed with; null on a GPU. */
  threads: number | null;
}

/** What stopped an exploration. `line` is the user's own line, counted from 1, where one is known. */
export interface Error {
  /** The type of the exception, or a name of ours such as TimeLimit. */
  type: string;
  /** What went wrong, in its own words. */
  message: string;
  /** The line of the snippet, counted from 1, where one is known. */
  line: number | null;
  /** The stage that it stopped. */
  stage: string | null;
  /** What the reader can do about it. */
  hint: string | null;
  /** Frames of the snippet; or, where the defect is ours, of the compiler, without the snippet's text. */
  traceback: string | null;
}

/** One captured graph, from FX to kernels. */
export interface Graph {
  /** Its name, such as graph_0, or graph_0_backward for its backward graph. */
  name: string;
  /** The user's function that it is a part of. */
  function: string | null;
  /** Whether it computes only, or is a half of a training step. */
  phase: "inference" | "forward" | "backward";
  /** The backward graph of a forward graph, and the other way. */
  partner: string | null;
  /** How often the snippet ran it. */
  calls: number;
  /** Where its kernels run: cpu or cuda. Beside a GPU, a graph of CPU tensors runs on the CPU. */
  device: string;
  /** The graph as Dynamo captured it. */
  fx: FxNode[];
  /** The same after AOTAutograd: functional, decomposed, forward or backward alone. */
  aten: FxNode[];
  /** Conditions under which it may be used. */
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
  /** Products of sizes that eight does not divide. */
  paddings: PaddingDecision[];
  /** The loop nodes before fusion. */
  loops: LoopNode[];
  /** In a large graph only the weightiest: see `more_decisions`. */
  decisions: Decision[];
  /** Those that are not told at length: both units, the round, the reason. */
  more_decisions: [number, number, number, string][];
  /** Pairs of kernels that run over as many iterations and leave no decision, being far apart. */
  pairs_not_asked: number;
  /** What the scheduler did, round by round. */
  rounds: Round[];
  /** Its tensors, and what becomes of each. */
  buffers: Buffer[];
  /** What the buffers take. */
  memory: Memory | null;
  /** The bytes that it moves. */
  traffic: Traffic | null;
  /** What is launched, in order. */
  kernels: Kernel[];
  /** The generated kernels one after another; what library calls take is not predicted. */
  predicted_us: number | null;
  /** One call of the graph with these kernels, measured beside each kernel alone. */
  call_us: number | null;
  /** Why the kernels' measured times are not to be relied on: they do not add up to the call's. They have no bandwidth then. */
  disturbed: string | null;
  /** Of its outputs against float64, where they were compared; for one seed, on its first inputs. */
  errors: OutputErrors[];
  /** The function that launches the kernels, as Python. */
  wrapper: string;
  /** Whether the launches are replayed as one CUDA graph. */
  replay: Replay | null;
  /** Launches of eager PyTorch for the same graph. */
  eager_kernels: number | null;
  /** Bytes that these move. */
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
  /** The same of the tensor cores on half types; null where there are none. */
  half_product_gflop_per_s: number | null;
  /** Whether `gb_per_s` was measured on such a device; else it is assumed. Operations are the data sheet's, or assumed of a CPU. */
  is_measured: boolean;
}

/** One step of the pipeline, its wall time, and how it ended. */
export interface Stage {
  /** The stage. */
  name: string;
  /** Its wall time, in milliseconds. */
  ms: number;
  /** How it ended. */
  status: "done" | "failed" | "skipped";
  /** Why it failed or was skipped, in a sentence. */
  message: string | null;
}

/** The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. A wrong result has no speed: where the report's `wrong_results` name "compiled", `compiled_ms` and `speedup` are null, and where they name "peer", `peer_ms` is. An error is null where one of the outputs cannot be compared, as NaN. */
export interface Summary {
  /** Launches of eager PyTorch. */
  eager_kernels: number | null;
  /** Launches of ours, library calls among them. */
  kernels: number | null;
  /** Launches of TorchInductor; null where they speak of other calls. */
  peer_kernels: number | null;
  /** Bytes that eager moves. */
  eager_bytes: number | null;
  /** One kernel for each loop node and library call. */
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
  /** The answer in a sentence or two; empty until calls were timed. */
  verdict: string;
}

/** Everything that came of one exploration. `status` is "running" until the last stage has ended, and "wrong_result" where all stages ended and a compiled result is wrong, here or at a size of the sweep. The service sets "cancelled" where somebody asked for the end, and "dropped" where nobody waited for it any longer. */
export interface Report {
  /** Version of this format. */
  version: number;
  /** Id of the exploration: a hash of the snippet, the options, the build and the device. */
  id: string;
  /** How it ended, or that it is running. */
  status: "running" | "ok" | "wrong_result" | "user_error" | "timeout" | "out_of_memory" | "crashed" | "cancelled" | "dropped";
  /** The snippet as it was given. */
  source: string;
  /** The options that it was given, by name; those that are unset are left out. */
  options: Record<string, unknown>;
  /** Id of the exploration that this one is compared with. */
  based_on: string | null;
  /** What came of each option that asks for other decisions. */
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
  /** What Dynamo did, one entry a compilation. */
  compilations: Compilation[];
  /** Outputs that rounding does not explain. */
  wrong_results: WrongResult[];
  /** What TorchInductor made of the same; null where it was not asked. */
  peer: Peer | null;
  /** Seconds of compiling by phase, ours and the peer's, in order. */
  compile_phases: CompilePhase[];
  /** Times of eager and compiled; null where none were taken. */
  timing: TimingResult | null;
  /** One call of each as torch's profiler recorded it, where that was asked for. */
  trace: TraceEvent[];
  /** Sizes that a sweep of this snippet can name. */
  sizes: NamedSize[];
  /** The snippet at other sizes, where that was asked for. */
  sweep: SweepResult | null;
  /** Of an exploration whose source is a kernel: what that was compiled to. */
  machine_code: MachineCode | null;
  /** Training, checked from end to end. */
  gradients: GradientCheck[];
  /** What the snippet printed, cut at a stated length. */
  output: string;
  /** What stopped it; null where nothing did. */
  error: Error | null;
  /** What the service saw of it from outside; null of one that it did not run. */
  observed: Observed | null;
}

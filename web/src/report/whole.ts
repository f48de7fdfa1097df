// Written by scripts/report_types.py from compiler/report/whole.py: change it there, and run the script again.

import type { Compilation, FxNode, GradientCheck, GraphBreak, Guard, Recompile, Rewrite, SavedTensor, Symbol } from "./capture";
import type { Decision, FoldingDecision, LayoutDecision, PaddingDecision, Round, WhatIf } from "./decisions";
import type { Kernel } from "./kernels";
import type { LoopNode, Removed } from "./loops";
import type { Buffer, Memory } from "./memory";
import type { Observed } from "./observed";
import type { Replay } from "./replays";
import type { NamedSize, SweepResult } from "./sweep";
import type { Peer, TimingResult, WrongResult } from "./timings";
import type { Traffic } from "./traffic";

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
  /** Products of sizes that eight does not divide. */
  paddings: PaddingDecision[];
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
  /** One call of the graph with these kernels, measured beside each kernel alone. */
  call_us: number | null;
  /** Why the kernels' measured times are not to be relied on: they do not add up to the call's. They have no bandwidth then. */
  disturbed: string | null;
  wrapper: string;
  /** Whether the launches are replayed as one CUDA graph. */
  replay: Replay | null;
  eager_kernels: number | null;
  eager_bytes: number | null;
  floor_bytes: number | null;
}

/** Something that the reader must know about how the snippet was run (an input that was chosen, a device that was replaced, a stage that does not apply). `line` is a line of the snippet. */
export interface Note {
  message: string;
  line: number | null;
}

/** One step of the pipeline, its wall time, and how it ended. */
export interface Stage {
  name: string;
  ms: number;
  status: "done" | "failed" | "skipped";
  message: string | null;
}

/** The answer bar. `*_error` is the largest relative error against float64; `speedup` is eager_ms / compiled_ms. A wrong result has no speed: where the report's `wrong_results` name "compiled", `compiled_ms` and `speedup` are null, and where they name "peer", `peer_ms` is. An error is null where one of the outputs cannot be compared, as NaN. */
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

/** Everything that came of one exploration. `status` is "running" until the last stage has ended, and "wrong_result" where all stages ended and a compiled result is wrong, here or at a size of the sweep. The service sets "cancelled" where somebody asked for the end, and "dropped" where nobody waited for it any longer. */
export interface Report {
  version: number;
  id: string;
  status: "running" | "ok" | "wrong_result" | "user_error" | "timeout" | "out_of_memory" | "crashed" | "cancelled" | "dropped";
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
  /** Outputs that rounding does not explain. */
  wrong_results: WrongResult[];
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
  /** What the service saw of it from outside; null of one that it did not run. */
  observed: Observed | null;
}

// Written by scripts/report_types.py from compiler/report/peers.py: change it there, and run the script again.

import type { KernelArtifact, KernelLevels, KernelLine, KernelStep, TileDescriptor, UserKernel } from "./kernels";
import type { ElementErrors } from "./timings";

/** Kernels of both compilers that compute the same nodes: the smallest sets that are whole in both. */
export interface AlignedKernels {
  /** Our graph. */
  graph: string;
  /** How the other compiler divides the nodes. Merged is fewer kernels. */
  relation: "same" | "split" | "merged" | "regrouped" | "only ours" | "only theirs";
  /** Nodes of `aten` that they compute, in the graph's order. */
  nodes: string[];
  /** Positions of our kernels in the graph, counted from 0. */
  ours: number[];
  /** Positions of the other compiler's kernels, counted from 0. */
  theirs: number[];
  /** The difference, in a sentence. Empty if there is none. */
  sentence: string;
  /** Our decision that explains the difference. Empty if none does. */
  because: string;
  /** Position of that decision among the graph's `decisions`. */
  decision: number | null;
  /** The two loop nodes that the decision is about. */
  pair: [string, string] | null;
  /** The other compiler's words for not fusing. Empty if it has none. */
  refusal: string;
  /** How often the same is found. 0 if an earlier entry counts this one. */
  count: number;
}

/** One result or gradient of a call, with rounded values, of everybody who gave it, element by element. */
export interface CallErrors {
  /** The function that was called. */
  entry: string;
  /** Its name: "the result", "result 2", "the gradient of x". */
  output: string;
  /** The seed of the inputs. With the snippet's own seed they are the snippet's own inputs. With another seed each floating argument gets values drawn from its own. */
  seed: number;
  /** Its dtype by torch's name. */
  dtype: string;
  /** How many elements were compared. A complex element counts as two. */
  elements: number;
  /** The errors of each contestant. Eager is first. */
  of: ContestantErrors[];
}

/** How far one contestant's output is from float64. */
export interface ContestantErrors {
  /** Its name, as among the contestants that were timed. */
  contestant: string;
  /** Errors of its elements. Null if not comparable. */
  errors: ElementErrors | null;
  /** What is wrong, in a clause, if rounding does not explain it: an error, another dtype or shape, or NaN or an infinity where neither float64 nor eager has it. */
  problem: string | null;
}

/** One way to run the same calls: its time and its error, or why it has none. */
export interface ContestantOutcome {
  /** Its name, as the options ask for it. */
  name: string;
  /** Milliseconds of a call: the median of all samples. */
  median_ms: number | null;
  /** Seconds of its first call, compiling included. */
  compile_s: number | null;
  /** Its largest relative error against float64. */
  max_error: number | null;
  /** Why it has no time, in a sentence. */
  failure: string | null;
}

/** What TorchInductor made of the same graphs, and how it and all other contestants fared. */
export interface Peer {
  /** The other compiler. */
  name: string;
  /** The mode that it was asked for. */
  mode: string;
  /** What it launches, in order, library calls included. */
  kernels: PeerKernel[];
  /** Its graphs, in the order in which it compiled them. */
  graphs: PeerGraph[];
  /** Its kernels beside ours. Differences come first. */
  alignment: AlignedKernels[];
  /** The kernels that it did not fuse, with its own words. */
  refusals: PeerRefusal[];
  /** Times and errors of all that were asked for. */
  contestants: ContestantOutcome[];
  /** How far everybody's results of whole calls are from float64, for several seeds. */
  errors: CallErrors[];
  /** The seeds that there are errors for, and why there are no more. */
  seeds: string;
  /** What it made of the snippet, or why it was not asked, in sentences. */
  message: string | null;
}

/** A tensor of the other compiler's wrapper. */
export interface PeerBuffer {
  /** Its name in the wrapper. */
  name: string;
  /** Bytes of all its elements. 0 if the size is symbolic. */
  bytes: number;
  /** Its dtype by torch's name. */
  dtype: string | null;
  /** The buffer whose memory it gets. */
  takes_over: string | null;
}

/** One graph as the other compiler compiled it. */
export interface PeerGraph {
  /** Our graph that it corresponds to. Null if there is none. */
  graph: string | null;
  /** The function that launches its kernels, as Python. */
  wrapper: string;
  /** Where `wrapper` launches which kernel. */
  launches: PeerLaunch[];
  /** Tensors that its kernels read and write. */
  buffers: PeerBuffer[];
  /** Nodes of its graph that have a counterpart in ours. */
  pairs: number;
}

/** A launch of the other compiler in our terms: `origins` and the nodes of `lines` are nodes of `graph`'s `aten`, `nodes` are the other compiler's own buffers. */
export interface PeerKernel {
  /** The name of its function, unique among generated kernels, or the operator of a library call. */
  name: string;
  /** Its language. extern is a library call. */
  kind: "triton" | "cpp" | "extern";
  /** The loop nodes that were fused into it. It computes all but `left_out`. */
  nodes: string[];
  /** Those of `nodes` that only other kernels compute, where they need them. */
  left_out: string[];
  /** Loop nodes of other kernels that it computes too, rather than read their values. */
  computes_again: string[];
  /** The nodes of `aten` behind the loop nodes that it computes. */
  origins: string[];
  /** Its whole text. */
  source: string;
  /** The language of `source`, for highlighting. */
  language: "python" | "cpp";
  /** Where each line of `source` comes from. */
  lines: KernelLine[];
  /** Lines of the snippet that it computes for. */
  user_lines: number[];
  /** Buffers that it reads. */
  reads: string[];
  /** Buffers that it writes. */
  writes: string[];
  /** Bytes that it moves. Each read counts once, and each write counts once. */
  bytes: number;
  /** Floating-point operations. An element of an operation or of a reduction counts as one, a pair of a product as two. Null if unknown. */
  flops: number | null;
  /** Programs along each axis of the launch. Null for C++ and library calls. */
  grid: number[] | null;
  /** The settings that it was generated with, such as tile sizes and warps, by name. */
  config: Record<string, unknown>;
  /** Registers of a thread, from the assembler. */
  registers: number | null;
  /** Bytes that a thread spills and loads again, from the assembler. */
  spills: number | null;
  /** Shared bytes of a program, from the assembler. */
  shared_bytes: number | null;
  /** Microseconds that the cost model expects. */
  predicted_us: number | null;
  /** Microseconds of the kernel alone on the device: the median of all samples. */
  measured_us: number | null;
  /** How much `measured_us` of another run may differ, in 95 of 100 runs. */
  spread_us: number | null;
  /** 10^9 bytes a second: `bytes` divided by `measured_us`. Null where `steps` has a library call. */
  gb_per_s: number | null;
  /** `gb_per_s` as a percentage of the device's memory bandwidth. Null on a CPU. */
  percent_of_peak: number | null;
  /** Open sizes that a launch passes after the buffers, with their values in the first call. */
  sizes: Record<string, unknown>;
  /** The buffers of `writes` whose values before the launch matter. */
  updates: string[];
  /** The calls that a launch of a product on a CPU consists of, in order. */
  steps: KernelStep[];
  /** Buffers that are passed as descriptors. */
  descriptors: TileDescriptor[];
  /** The first kernel of the graph with the same code, except for names. */
  same_as: string | null;
  /** How the call launches a Triton kernel of the snippet, whose text is `source`. */
  own: UserKernel | null;
  /** Where the values of a generated GPU kernel live. */
  levels: KernelLevels | null;
  /** The same kernel for other targets. */
  also: KernelArtifact[];
  /** Our graph that it belongs to. Null if there is none. */
  graph: string | null;
  /** The form of the kernel, as its name and its loops show it. */
  form: "pointwise" | "reduction" | "persistent reduction" | "scan" | "template" | "foreach" | "library call" | "loops";
  /** Whether its own nodes have counterparts in ours. If not, `origins` are the nearest nodes that have one, or the nodes of its lines. */
  is_exact: boolean;
  /** Operators that it computes, by their names before decomposition. */
  fuses: string[];
}

/** One line of the other compiler's wrapper that launches. */
export interface PeerLaunch {
  /** The line in the wrapper, counted from 1. */
  line: number;
  /** Position of the kernel among the other compiler's kernels, counted from 0. */
  kernel: number;
}

/** Two kernels that the other compiler did not fuse, with the last words that it had for it. */
export interface PeerRefusal {
  /** The graph of ours that both belong to. */
  graph: string | null;
  /** Positions of the two among the other compiler's kernels. */
  kernels: [number, number];
  /** A node of `aten` that the first computes. */
  a: string;
  /** A node of `aten` that the second computes. */
  b: string;
  /** The other compiler's own words. */
  message: string;
}

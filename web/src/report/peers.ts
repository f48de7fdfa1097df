// Written by scripts/report_types.py from compiler/report/peers.py: change it there, and run the script again.

import type { KernelArtifact, KernelLevels, KernelLine, KernelStep, TileDescriptor, UserKernel } from "./kernels";
import type { ElementErrors } from "./timings";

/** Kernels of both compilers that compute the same nodes: the smallest sets that are whole in both. */
export interface AlignedKernels {
  /** The graph of ours. */
  graph: string;
  /** What the other compiler made of ours: merged is fewer kernels. */
  relation: "same" | "split" | "merged" | "regrouped" | "only ours" | "only theirs";
  /** Nodes of `aten` that they compute, in the graph's order. */
  nodes: string[];
  /** Places of our kernels in the graph, counted from 0. */
  ours: number[];
  /** Places of the other compiler's kernels, counted from 0. */
  theirs: number[];
  /** What is different, in a sentence; empty where nothing is. */
  sentence: string;
  /** The decision of ours that explains it; empty where none does. */
  because: string;
  /** Place of that decision among the graph's `decisions`. */
  decision: number | null;
  /** The two loop nodes that the decision is about. */
  pair: [string, string] | null;
  /** The other compiler's words for not fusing; empty where it has none. */
  refusal: string;
  /** How often the same is found, as in equal layers; 0 where one before this tells of it. */
  count: number;
}

/** One result or gradient of a call, with rounded values, of everybody who gave it, element by element. */
export interface CallErrors {
  /** The function that was called. */
  entry: string;
  /** Its name: "the result", "result 2", "the gradient of x". */
  output: string;
  /** The seed of the inputs. The snippet's own seed is its own inputs; for the others each floating argument has values drawn from its own. */
  seed: number;
  /** Its dtype by torch's name. */
  dtype: string;
  /** How many elements were compared; a complex one is two. */
  elements: number;
  /** Everybody's, eager's first. */
  of: ContestantErrors[];
}

/** How far one contestant's output is from float64. */
export interface ContestantErrors {
  /** Its name, as among the contestants that were timed. */
  contestant: string;
  /** Null where the two cannot be compared. */
  errors: ElementErrors | null;
  /** Where rounding does not explain it, what is wrong with it, in a clause: an error, another dtype or shape, or NaN or an infinity where neither float64 nor eager has it. */
  problem: string | null;
}

/** One way to run the same calls: its time and its error, or why it has none. */
export interface ContestantOutcome {
  /** Its name, as the options ask for it. */
  name: string;
  /** Milliseconds of a call, the median of all samples. */
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
  /** Its kernels beside ours, the differences first. */
  alignment: AlignedKernels[];
  /** What it did not fuse, in its own words. */
  refusals: PeerRefusal[];
  /** Times and errors of all that were asked. */
  contestants: ContestantOutcome[];
  /** Of whole calls, how far everybody is from float64, for several seeds of the inputs. */
  errors: CallErrors[];
  /** For which seeds there are errors, and why for no more, in a sentence. */
  seeds: string;
  /** What it made of the snippet, or why it was not asked, in sentences. */
  message: string | null;
}

/** A tensor of the other compiler's wrapper. */
export interface PeerBuffer {
  /** Its name in the wrapper. */
  name: string;
  /** Bytes of all its elements; 0 where the size is symbolic. */
  bytes: number;
  /** Its dtype by torch's name. */
  dtype: string | null;
  /** The buffer whose memory it gets. */
  takes_over: string | null;
}

/** One graph as the other compiler compiled it. */
export interface PeerGraph {
  /** The graph of ours that it is; null if there is none. */
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
  /** Its function's name, or the operator of a library call. Unique among generated kernels of a graph. */
  name: string;
  /** What it is written in; extern is a library call. */
  kind: "triton" | "cpp" | "extern";
  /** The loop nodes that it computes. */
  nodes: string[];
  /** The nodes of `aten` that these came from. */
  origins: string[];
  /** Its whole text. */
  source: string;
  /** The language of `source`, for who highlights it. */
  language: "python" | "cpp";
  /** Where each line of `source` comes from. */
  lines: KernelLine[];
  /** Lines of the snippet that it computes for. */
  user_lines: number[];
  /** Buffers that it reads. */
  reads: string[];
  /** Buffers that it writes. */
  writes: string[];
  /** Bytes that it moves: each read counted once, each write counted once. */
  bytes: number;
  /** Floating-point operations, counted: each operation of an element as one, each element of a reduction as one, each pair of a product as two; null of a library call that torch has no formula for. */
  flops: number | null;
  /** Programs along each axis of the launch; null for C++ and library calls. */
  grid: number[] | null;
  /** How it was generated: tile sizes, warps, stages, workspace bytes and the like, by name. */
  config: Record<string, unknown>;
  /** Registers of a thread, by the assembler. */
  registers: number | null;
  /** Bytes that a thread spills and loads again, by the assembler. */
  spills: number | null;
  /** Bytes of shared memory of a program, by the assembler. */
  shared_bytes: number | null;
  /** Microseconds that the cost model expects. */
  predicted_us: number | null;
  /** Microseconds on the device, alone, the median of all samples. */
  measured_us: number | null;
  /** By how much `measured_us` of another run may differ, 95 times in 100. */
  spread_us: number | null;
  /** 10^9 bytes a second: `bytes` by `measured_us`. */
  gb_per_s: number | null;
  /** Percent of the device's memory bandwidth that this is; null on a CPU. */
  percent_of_peak: number | null;
  /** Open sizes that a launch passes after the buffers, with their values in the first call. */
  sizes: Record<string, unknown>;
  /** Those of `writes` whose values before the launch matter. */
  updates: string[];
  /** Of a product on a CPU: the calls that a launch consists of, in order. */
  steps: KernelStep[];
  /** Buffers that are passed as descriptors. */
  descriptors: TileDescriptor[];
  /** The first kernel of the graph that is the same code but for names, if not this one. */
  same_as: string | null;
  /** Of a call that launches a Triton kernel of the snippet's, whose text is `source`. */
  own: UserKernel | null;
  /** Of a generated kernel, where the target is a GPU. */
  levels: KernelLevels | null;
  /** The same kernel for other targets. */
  also: KernelArtifact[];
  /** The graph of ours that it belongs to; null if it has none. */
  graph: string | null;
  /** What its name and its loops say that it is. */
  form: "pointwise" | "reduction" | "persistent reduction" | "scan" | "template" | "foreach" | "library call" | "loops";
  /** Whether its own nodes have counterparts in ours; if not, `origins` are the nearest that have, or those of its lines. */
  is_exact: boolean;
  /** Operators that it computes, as they were before decomposition. */
  fuses: string[];
}

/** One line of the other compiler's wrapper that launches. */
export interface PeerLaunch {
  /** The line in the wrapper, counted from 1. */
  line: number;
  /** Place of what it launches among the other compiler's kernels, counted from 0. */
  kernel: number;
}

/** Two kernels that the other compiler did not fuse, with the last words that it had for it. */
export interface PeerRefusal {
  /** The graph of ours that both belong to. */
  graph: string | null;
  /** Places of the two among the other compiler's kernels, from 0. */
  kernels: [number, number];
  /** A node of `aten` that the first computes. */
  a: string;
  /** A node of `aten` that the second computes. */
  b: string;
  /** The other compiler's own words. */
  message: string;
}

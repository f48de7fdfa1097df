// Written by scripts/report_types.py from compiler/report/timings.py: change it there, and run the script again.

import type { Kernel } from "./kernels";

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

/** What TorchInductor made of the same graphs. */
export interface Peer {
  name: string;
  kernels: Kernel[];
  message: string | null;
}

/** `contestants` are those whose results are right, or could not be checked. */
export interface TimingResult {
  method: string;
  device: string;
  cold_l2: boolean;
  contestants: Contestant[];
}

/** An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph there is none. */
export interface WrongResult {
  contestant: "compiled" | "peer";
  /** The graph that gives it; null for a result of a whole call. */
  graph: string | null;
  /** The function that was called. */
  entry: string | null;
  /** Its name: of a graph's output the ATen node, of a call's "the gradient of x". */
  output: string;
  error: number | null;
  eager_error: number | null;
  tolerance: number | null;
  /** Which output is wrong and by how much, in a sentence. */
  message: string;
}

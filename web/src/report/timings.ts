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

export interface TimingResult {
  method: string;
  device: string;
  cold_l2: boolean;
  contestants: Contestant[];
}

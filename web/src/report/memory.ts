// Written by scripts/report_types.py from compiler/report/memory.py: change it there, and run the script again.

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

/** A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it writes the other. */
export interface Reuse {
  buffer: string;
  takes_over: string;
  bytes: number;
  in_place: boolean;
}

// Written by scripts/report_types.py from compiler/report/memory.py: change it there, and run the script again.

/** A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs). */
export interface Buffer {
  /** Its name. */
  name: string;
  /** Its sizes, outermost first. */
  shape: (number | string)[];
  /** Its strides, in elements. */
  stride: (number | string)[];
  /** Its dtype by torch's name. */
  dtype: string;
  /** Bytes of memory that it takes. */
  bytes: number;
  /** Position of the kernel that writes it. An input has -1. */
  first: number | null;
  /** Position of the last kernel that uses it. What the call leaves has the number of kernels. */
  last: number | null;
  /** What becomes of it. A register is never in memory. */
  fate: "input" | "output" | "register" | "reused" | "in_place" | "allocated" | "dead";
  /** The buffer whose memory it gets. */
  takes_over: string | null;
  /** The smallest value of integers that the graph is given. */
  smallest: number | null;
  /** The largest value of integers that the graph is given. */
  largest: number | null;
  /** A further remark. */
  note: string | null;
}

/** What the buffers of a graph take, its inputs not counted, in bytes. */
export interface Memory {
  /** The most that is alive at one time. */
  peak_bytes: number;
  /** The peak of our kernels in the order of the code. */
  unordered_peak_bytes: number;
  /** The sum of all buffers of our kernels. */
  without_reuse_bytes: number;
  /** Buffers that get the memory of others. */
  reuses: Reuse[];
  /** The most that is alive at one time without fusion. */
  unfused_peak_bytes: number;
  /** The sum of all buffers without fusion. */
  unfused_without_reuse_bytes: number;
  /** Buffers that would get the memory of others without fusion. */
  unfused_reuses: Reuse[];
  /** What is alive while each kernel runs, and after the last. */
  live_bytes: number[];
  /** Bytes that are alive without fusion, node by node. */
  unfused_live_bytes: number[];
  /** The buffers without fusion, with positions among the nodes that are not dead. */
  unfused_buffers: Buffer[];
}

/** A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it writes the other. */
export interface Reuse {
  /** The buffer that gets the memory. */
  buffer: string;
  /** The buffer whose memory it was. */
  takes_over: string;
  /** Bytes that this saves. */
  bytes: number;
  /** Whether one kernel reads the old buffer while it writes the new one. */
  in_place: boolean;
}

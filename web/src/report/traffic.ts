// Written by scripts/report_types.py from compiler/report/traffic.py: change it there, and run the script again.

/** One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that. */
export interface EdgeTraffic {
  tensor: string;
  /** The loop node; None for an input or a constant. */
  producer: string | null;
  consumer: string;
  written_bytes: number;
  read_bytes: number;
  /** Of `read_bytes`, what the reader's kernel does not read for it. */
  saved_read_bytes: number;
  fate: "memory" | "register" | "read_saved" | "recomputed" | "shared_read";
}

/** What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`, and `library_bytes` that over the library calls among them, which move it at least. */
export interface ExecutionTraffic {
  bytes: number;
  library_bytes: number;
  launches: LaunchTraffic[];
}

/** What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that eager made the call for. */
export interface LaunchTraffic {
  name: string;
  node: string | null;
  bytes: number;
  tensors: TensorTraffic[];
  lines: number[];
  /** What a library call may move besides: `bytes` is then what it moves at least. */
  unseen: string;
}

/** What one launch moves of one tensor: each element that it needs is read once and written once. */
export interface TensorTraffic {
  tensor: string;
  read_bytes: number;
  written_bytes: number;
}

/** The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels). */
export interface Traffic {
  /** Missing where the graph cannot be run on shapes alone. */
  eager: ExecutionTraffic | null;
  unfused: ExecutionTraffic | null;
  fused: ExecutionTraffic | null;
  floor_bytes: number | null;
  floor: TensorTraffic[];
  edges: EdgeTraffic[];
  /** Of tensors that fusion keeps out of memory. */
  saved_written_bytes: number;
  /** Of `edges` whose reader needs no read of its own. */
  saved_read_bytes: number;
  /** What kernels read that their nodes alone would not: to compute values again. */
  more_read_bytes: number;
}

// Written by scripts/report_types.py from compiler/report/traffic.py: change it there, and run the script again.

/** One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that. */
export interface EdgeTraffic {
  /** The buffer. */
  tensor: string;
  /** The loop node that makes it. Null for an input or a constant. */
  producer: string | null;
  /** The loop node that reads it. */
  consumer: string;
  /** Bytes that writing it takes without fusion, once for all readers. */
  written_bytes: number;
  /** Bytes that this reader reads of it without fusion. */
  read_bytes: number;
  /** The part of `read_bytes` that the reader's kernel does not read for it. */
  saved_read_bytes: number;
  /** What fusion made of it. */
  fate: "memory" | "register" | "read_saved" | "recomputed" | "shared_read";
}

/** What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`, and `library_bytes` that over the library calls among them, which move it at least. */
export interface ExecutionTraffic {
  /** Bytes of all launches together. */
  bytes: number;
  /** Bytes of the library calls, which are the least that they move. */
  library_bytes: number;
  /** Each launch, in order. */
  launches: LaunchTraffic[];
}

/** What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that eager made the call for. */
export interface LaunchTraffic {
  /** Eager's operator, or the name of a loop node or of a kernel. */
  name: string;
  /** The node of `fx` that eager made the call for. */
  node: string | null;
  /** Bytes of all its tensors together. */
  bytes: number;
  /** What it moves of each tensor. */
  tensors: TensorTraffic[];
  /** Lines of the snippet that it came from. */
  lines: number[];
  /** What a library call may move besides. `bytes` is then the least that it moves. */
  unseen: string;
}

/** What one launch moves of one tensor: each element that it needs is read once and written once. */
export interface TensorTraffic {
  /** The buffer. */
  tensor: string;
  /** Bytes that are read of it. */
  read_bytes: number;
  /** Bytes that are written of it. */
  written_bytes: number;
}

/** The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels). */
export interface Traffic {
  /** Eager PyTorch. Null if the graph cannot be run on shapes alone. */
  eager: ExecutionTraffic | null;
  /** One launch for each loop node and library call. */
  unfused: ExecutionTraffic | null;
  /** Our kernels. */
  fused: ExecutionTraffic | null;
  /** Bytes that any compiler must move. */
  floor_bytes: number | null;
  /** The bytes of the floor, tensor by tensor. */
  floor: TensorTraffic[];
  /** Each tensor on its way to each of its readers. */
  edges: EdgeTraffic[];
  /** Bytes of tensors that fusion keeps out of memory. */
  saved_written_bytes: number;
  /** The sum of `saved_read_bytes` over `edges`. */
  saved_read_bytes: number;
  /** Bytes that kernels read only to compute values again. */
  more_read_bytes: number;
}

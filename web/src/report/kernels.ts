// Written by scripts/report_types.py from compiler/report/kernels.py: change it there, and run the script again.

/** What is launched: one generated function or one library call. A generated one gets `reads`, then `writes`, then `sizes`. */
export interface Kernel {
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
}

/** The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel. */
export interface KernelArtifact {
  /** What it is written in. */
  language: "triton" | "cpp" | "ptx";
  /** The target that it was generated for, such as sm_90. */
  target: string;
  /** Its whole text. */
  source: string;
  /** Where each line of `source` comes from. */
  lines: KernelLine[];
  /** Registers of a thread, from the assembler. */
  registers: number | null;
  /** Bytes that a thread spills and loads again, from the assembler. */
  spills: number | null;
  /** Shared bytes of a program, from the assembler. */
  shared_bytes: number | null;
  /** The settings that it was generated with, by name. */
  config: Record<string, unknown>;
  /** How this rendering was checked, and with what result. */
  check: string | null;
  /** The largest relative error that the check found. */
  max_error: number | null;
}

/** Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured. */
export interface KernelLevels {
  /** The GPU whose plan it is, such as sm_90. */
  target: string;
  /** How the kernel goes through its loops. */
  plan: "pointwise" | "persistent" | "looped" | "split" | "team" | "look_back" | "batch" | "product";
  /** How many programs run. */
  programs: number;
  /** Threads of one program. */
  threads: number;
  /** Elements of a program along each axis. Along r, of one step. */
  tile: Record<string, unknown>;
  /** Passes over the reduction loops. 1 if all of r stays in registers. */
  passes: number;
  /** What the kernel loads of each tensor. */
  loads: TensorLoads[];
  /** Predicted bytes that later passes load again and that the cache no longer holds. */
  missed_bytes: number;
  /** Values of nodes that stay in registers and reach no memory. */
  kept: string[];
  /** Values that the threads of a program combine, through shuffles and shared memory. */
  combined: string[];
}

/** Where one line of a kernel comes from: `line` counts from 1 in the kernel's source. */
export interface KernelLine {
  /** The line in the kernel's source, counted from 1. */
  line: number;
  /** Loop nodes that the line computes for. */
  nodes: string[];
  /** Lines of the snippet that it computes for. */
  user_lines: number[];
}

/** One call among those that a launch consists of: a function of the kernel's source, or a library call. */
export interface KernelStep {
  /** The function of `source`. Null for a library call. */
  function: string | null;
  /** The buffers that the function gets, in order. */
  buffers: string[];
  /** The loop node whose library call it is. */
  call: string | null;
}

/** What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them. */
export interface TensorLoads {
  /** The buffer that is loaded. */
  tensor: string;
  /** Bytes that come from memory. Each element counts once. */
  memory_bytes: number;
  /** Bytes of all loads. An element that is loaded again counts again. */
  loaded_bytes: number;
}

/** A matrix that a kernel gets as a descriptor of its tiles, as Triton's TensorDescriptor; all in elements. */
export interface TileDescriptor {
  /** The buffer that it describes. */
  buffer: string;
  /** Rows and columns of the matrix. */
  shape: [number, number];
  /** Elements from one row to the next, and from one column to the next. */
  strides: [number, number];
  /** Rows and columns of a tile. */
  tile: [number, number];
}

/** What a Triton kernel of the snippet's gets in one position. */
export interface UserArgument {
  /** The type as Triton writes it, such as *fp32 or i32. */
  type: string;
  /** Whether an address or a number is a multiple of 16. */
  is_divisible: boolean;
}

/** With what a Triton kernel of the snippet's own is launched. It runs on copies of what it writes to. */
export interface UserKernel {
  /** The function with `@triton.jit`, in the kernel's source. */
  function: string;
  /** The arguments that are no constants, in order. */
  arguments: UserArgument[];
  /** The constants. A number that is 1 is a constant. */
  constants: Record<string, unknown>;
  /** Triton's options of the first configuration. */
  launch: Record<string, unknown>;
  /** Why it cannot be compiled by itself, in a sentence. */
  problem: string | null;
}

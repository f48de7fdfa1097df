// Written by scripts/report_types.py from compiler/report/kernels.py: change it there, and run the script again.

/** What is launched: one generated function or one library call. A generated one gets `reads`, then `writes`, then `sizes`. */
export interface Kernel {
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
}

/** The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel. */
export interface KernelArtifact {
  /** What it is written in. */
  language: "triton" | "cpp" | "ptx";
  /** What it was generated for, such as sm_90. */
  target: string;
  /** Its whole text. */
  source: string;
  /** Where each line of `source` comes from. */
  lines: KernelLine[];
  /** Registers of a thread, by the assembler. */
  registers: number | null;
  /** Bytes that a thread spills and loads again, by the assembler. */
  spills: number | null;
  /** Bytes of shared memory of a program, by the assembler. */
  shared_bytes: number | null;
  /** How it was generated, by name. */
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
  /** Of one program. */
  threads: number;
  /** Elements of one program along each axis; of one step in r. */
  tile: Record<string, unknown>;
  /** Over the reduction loops; 0 without any, 1 where all of r stays in registers. */
  passes: number;
  /** What it loads of each tensor. */
  loads: TensorLoads[];
  /** Predicted: of what later passes load again, what the cache holds no more. */
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
  /** The function of `source`; null for a library call. */
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
  /** Bytes that come from memory: each element once. */
  memory_bytes: number;
  /** Bytes of all loads, those of elements that were loaded before among them. */
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

/** What a Triton kernel of the snippet's gets in one place. */
export interface UserArgument {
  /** As Triton writes it, such as *fp32 or i32. */
  type: string;
  /** Whether an address or a number is a multiple of 16. */
  is_divisible: boolean;
}

/** With what a Triton kernel of the snippet's own is launched. It runs on copies of what it writes to. */
export interface UserKernel {
  /** The function with `@triton.jit`, in the kernel's source. */
  function: string;
  /** Its arguments that are no constants, in order. */
  arguments: UserArgument[];
  /** Its constants; a number that is 1 is one. */
  constants: Record<string, unknown>;
  /** Triton's options, of the first configuration. */
  launch: Record<string, unknown>;
  /** Why it cannot be compiled by itself, in a sentence. */
  problem: string | null;
}

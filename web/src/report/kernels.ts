// Written by scripts/report_types.py from compiler/report/kernels.py: change it there, and run the script again.

/** What is launched: one generated function or one library call. */
export interface Kernel {
  name: string;
  kind: "triton" | "cpp" | "extern";
  nodes: string[];
  origins: string[];
  source: string;
  language: "python" | "cpp";
  lines: KernelLine[];
  user_lines: number[];
  reads: string[];
  writes: string[];
  bytes: number;
  flops: number | null;
  grid: number[] | null;
  config: Record<string, unknown>;
  registers: number | null;
  spills: number | null;
  shared_bytes: number | null;
  predicted_us: number | null;
  measured_us: number | null;
  gb_per_s: number | null;
  percent_of_peak: number | null;
  /** The first kernel of the graph that is the same code but for names, if not this one. */
  same_as: string | null;
  /** Of a generated kernel, where the target is a GPU. */
  levels: KernelLevels | null;
  /** The same kernel for other targets. */
  also: KernelArtifact[];
}

/** The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel. */
export interface KernelArtifact {
  language: "triton" | "cpp" | "ptx";
  target: string;
  source: string;
  lines: KernelLine[];
  registers: number | null;
  spills: number | null;
  shared_bytes: number | null;
  config: Record<string, unknown>;
  /** How this rendering was checked, and with what result. */
  check: string | null;
  max_error: number | null;
}

/** Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured. */
export interface KernelLevels {
  target: string;
  plan: "pointwise" | "persistent" | "looped" | "split" | "team" | "look_back" | "batch" | "product";
  programs: number;
  /** Of one program. */
  threads: number;
  /** Elements of one program along each axis; of one step in r. */
  tile: Record<string, unknown>;
  /** Over the reduction loops; 0 without any, 1 where all of r stays in registers. */
  passes: number;
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
  line: number;
  nodes: string[];
  user_lines: number[];
}

/** What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them. */
export interface TensorLoads {
  tensor: string;
  memory_bytes: number;
  loaded_bytes: number;
}

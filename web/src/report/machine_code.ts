// Written by scripts/report_types.py from compiler/report/machine_code.py: change it there, and run the script again.

/** The kernel in one of the languages that it goes through. */
export interface CodeLevel {
  /** The language. */
  name: "ttir" | "ttgir" | "llvm" | "ptx" | "sass" | "amdgcn" | "assembly";
  /** The code, without debug sections. */
  text: string;
  /** Pairs of a line of `text` and a line of the source. */
  lines: [number, number][];
  /** Lines before the text was cut. */
  all_lines: number;
  /** What was left out at the end, in a sentence. */
  cut: string | null;
}

/** One kernel compiled for one target, on no device: every level of its code, and what the last one says. */
export interface MachineCode {
  /** Its function's name. */
  kernel: string;
  /** What its source is written in. */
  language: "triton" | "cpp";
  /** What it was compiled for: sm_90, gfx942, or host for this machine's processor. */
  target: string;
  /** Every level of its code, from the kernel's source down. */
  levels: CodeLevel[];
  /** Threads of a program. */
  threads: number | null;
  /** Registers of a thread. On an AMD GPU vector registers. */
  registers: number | null;
  /** Bytes that a thread spills and loads again. */
  spills: number | null;
  /** Bytes of shared memory of a program. */
  shared_bytes: number | null;
  /** Null if the device's rules are not known. */
  occupancy: Occupancy | null;
  /** Instructions of the last level by what they do. Each counts once, as it is written. */
  instructions: Record<string, unknown>;
  /** Loads and stores of the last level, in order. */
  accesses: MemoryAccess[];
  /** The different instructions of matrix units. Empty if they are not used. */
  matrix_instructions: string[];
  /** The innermost loops of a C++ kernel. */
  loops: VectorLoop[];
  /** What the compiler says of the loops of a C++ kernel. */
  remarks: VectorRemark[];
  /** The steps of Triton that changed the kernel. */
  passes: Pass[];
  /** What is missing and why, in sentences. */
  notes: string[];
}

/** One load or store in the machine's code. */
export interface MemoryAccess {
  /** Its line in the text of the last level. */
  line: number;
  /** The line of the kernel's source, if known. */
  source_line: number | null;
  /** Name of the instruction, with the parts that change its meaning. */
  instruction: string;
  /** The kind of memory. */
  space: "global" | "shared" | "local" | "constant" | "other";
  /** Whether it writes. */
  is_store: boolean;
  /** Bits of one thread. Null if many threads share one access. */
  bits: number | null;
}

/** How many warps a multiprocessor holds of this kernel at most, by NVIDIA's rules: computed, not measured. */
export interface Occupancy {
  /** Warps of the kernel that a multiprocessor holds at once. */
  warps: number;
  /** Warps that the multiprocessor has room for. */
  most_warps: number;
  /** `warps` as a percentage of `most_warps`. */
  percent: number;
  /** Programs of the kernel that a multiprocessor holds at once. */
  programs: number;
  /** What each resource allows. */
  limits: OccupancyLimit[];
  /** The resources that allow the fewest programs. */
  limited_by: string[];
  /** Where the rules and the limits are written. */
  source: string;
}

/** How many programs one resource has room for on a multiprocessor. */
export interface OccupancyLimit {
  /** The resource. */
  by: "registers" | "shared memory" | "warps" | "programs";
  /** Programs that it has room for. */
  programs: number;
}

/** One step of Triton that changed the kernel: what went out and what came in, as a unified diff. */
export interface Pass {
  /** The language that it works on. */
  level: "ttir" | "ttgir" | "llvm" | "ptx" | "sass" | "amdgcn" | "assembly";
  /** Its name in MLIR. */
  name: string;
  /** The changed lines with two lines around them. A long diff is cut. */
  diff: string;
}

/** An innermost loop of a C++ kernel in the compiler's assembly. */
export interface VectorLoop {
  /** Its first line in the assembly. */
  first: number;
  /** Its last line: the jump back. */
  last: number;
  /** Lines of the kernel's source that are computed in it. */
  source_lines: number[];
  /** Floating-point instructions on vectors. */
  packed: number;
  /** Floating-point instructions on one number. */
  scalar: number;
  /** Bits of the widest vector register in it. 0 if there is none. */
  bits: number;
}

/** What the C++ compiler says of a loop, in its own words. */
export interface VectorRemark {
  /** The line of the kernel's source. */
  line: number;
  /** Whether the compiler used vector instructions. */
  is_vectorised: boolean;
  /** The compiler's words. */
  message: string;
}

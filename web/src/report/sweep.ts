// Written by scripts/report_types.py from compiler/report/sweep.py: change it there, and run the script again.

import type { WrongResult } from "./timings";

/** Something that the compiler does otherwise than at the size before. */
export interface Flip {
  /** What flips: a verdict, a count of kernels, or a choice. */
  kind: "verdict" | "kernels" | "choice";
  /** The graph that it is in. Empty for a count of all graphs. */
  graph: string | null;
  /** The pair as "a + b", the kernel whose plan it is, or "launches" or "kernels". */
  about: string;
  /** The answer at the size before. */
  before: string;
  /** The answer at this size. */
  after: string;
}

/** A size of the snippet that a sweep can name, with its value as written. */
export interface NamedSize {
  /** The size as a sweep names it. */
  name: string;
  /** Its value as written. */
  value: number;
  /** Lines of the snippet that contain it. */
  lines: number[];
}

/** What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it by the fusion of others. */
export interface Outcome {
  /** The scheduler's last answer. */
  verdict: "fused" | "refused" | "never considered";
  /** Id of the reason, as in GET /api/v1/reasons. Null if the scheduler never asked. */
  reason: string | null;
  /** Whether both are in one kernel in the end. */
  together: boolean;
}

/** One snippet at several sizes, in ascending order; each size is compared with the one before it that has kernels. */
export interface SweepResult {
  /** The size that was swept. */
  name: string;
  /** What the snippet becomes at each size, in ascending order. */
  sizes: SweptSize[];
  /** The pairs. Those that flip come first. See `more_pairs`. */
  pairs: SweptPair[];
  /** How many pairs are not listed. */
  more_pairs: number;
  /** Where something flips, in a sentence. */
  verdict: string;
  /** What the reader must know besides. */
  message: string | null;
}

/** A pair of nodes, matched by name, with its outcome at each size in order. It is null if there is no such pair. */
export interface SweptPair {
  /** The graph that the pair is in. */
  graph: string;
  /** The first of the two, as a loop node. */
  a: string;
  /** The second of the two, as a loop node. */
  b: string;
  /** What became of the pair at each size, in order. Null if that size has no such pair. */
  outcomes: (Outcome | null)[];
  /** Whether the outcomes differ. */
  flips: boolean;
}

/** What the snippet becomes at one size. A figure is null if it is not known. */
export interface SweptSize {
  /** The value of the size. */
  value: number;
  /** What went wrong at this size, in a sentence. */
  error: string | null;
  /** Outputs that rounding does not explain. The compiled call then has no time. */
  wrong_results: WrongResult[];
  /** Generated kernels and library calls. */
  launches: number | null;
  /** Generated kernels. */
  kernels: number | null;
  /** Bytes that all kernels and library calls move. */
  bytes: number | null;
  /** Bytes that any compiler must move. */
  floor_bytes: number | null;
  /** Predicted time of the generated kernels. */
  predicted_us: number | null;
  /** The sum of the generated kernels, each alone. */
  measured_us: number | null;
  /** Milliseconds of an eager call: the median. */
  eager_ms: number | null;
  /** Milliseconds of a compiled call: the median. */
  compiled_ms: number | null;
  /** How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split", "team" or "look_back". */
  plans: Record<string, unknown>;
  /** What differs from the size before. */
  flips: Flip[];
  /** How many flips are not listed. */
  more_flips: number;
}

// Written by scripts/report_types.py from compiler/report/sweep.py: change it there, and run the script again.

import type { WrongResult } from "./timings";

/** Something that the compiler does otherwise than at the size before. */
export interface Flip {
  kind: "verdict" | "kernels" | "choice";
  /** The graph that it is in; of a count: all of them. */
  graph: string | null;
  /** The pair, as "a + b"; the kernel whose plan it is; or "kernels". */
  about: string;
  before: string;
  after: string;
}

/** A size of the snippet that a sweep can name, with its value as written. */
export interface NamedSize {
  name: string;
  value: number;
  lines: number[];
}

/** What became of a pair of nodes: the scheduler's last answer, and whether both are in one kernel in the end, be it by the fusion of others. */
export interface Outcome {
  verdict: "fused" | "refused" | "never considered";
  reason: string | null;
  together: boolean;
}

/** One snippet at several sizes, in ascending order; each size is compared with the one before it that has kernels. */
export interface SweepResult {
  name: string;
  sizes: SweptSize[];
  /** Those that flip first; see `more_pairs`. */
  pairs: SweptPair[];
  /** How many pairs are not listed. */
  more_pairs: number;
  verdict: string;
  message: string | null;
}

/** A pair of nodes, matched by name, with its outcome at each size in order; null where there is no such pair. */
export interface SweptPair {
  graph: string;
  a: string;
  b: string;
  outcomes: (Outcome | null)[];
  flips: boolean;
}

/** What the snippet becomes at one size. A figure is null where it is not known. */
export interface SweptSize {
  value: number;
  /** What went wrong at this size, in a sentence. */
  error: string | null;
  /** Outputs that rounding does not explain: there is no time of the compiled call then. */
  wrong_results: WrongResult[];
  /** Generated kernels and library calls. */
  launches: number | null;
  /** The generated ones among them. */
  kernels: number | null;
  bytes: number | null;
  floor_bytes: number | null;
  /** The generated kernels, one after another. */
  predicted_us: number | null;
  /** The generated kernels together, each on its own. */
  measured_us: number | null;
  eager_ms: number | null;
  compiled_ms: number | null;
  /** How each Triton kernel runs its loops: "pointwise", "persistent", "looped", "split", "team" or "look_back". */
  plans: Record<string, unknown>;
  flips: Flip[];
  /** How many flips are not listed. */
  more_flips: number;
}

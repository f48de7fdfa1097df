// Written by scripts/report_types.py from compiler/report/loops.py: change it there, and run the script again.

/** A read or a write of one buffer: `index` is the element offset as a formula of the loop variables. */
export interface Access {
  buffer: string;
  index: string;
  bytes: number;
}

/** A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line. */
export interface LoopNode {
  name: string;
  kind: "pointwise" | "reduction" | "scan" | "scatter" | "extern" | "view";
  sizes: (number | string)[];
  reduction_sizes: (number | string)[];
  dtype: string | null;
  shape: (number | string)[] | null;
  body: string[];
  reads: Access[];
  writes: Access[];
  /** FX nodes of `aten` that it came from. */
  origins: string[];
  lines: number[];
  dead: boolean;
  /** True for an ATen call that we have no lowering for. */
  fallback: boolean;
}

/** A node that nothing had to be done for. It is one of `fx` where it is "dead", else of `aten`; in a training step also one that repeated another before forward and backward were split. */
export interface Removed {
  kind: "dead" | "common_subexpression" | "constant" | "view" | "cast" | "copy";
  node: string;
  because: string;
  lines: number[];
}

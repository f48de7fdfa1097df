// Written by scripts/report_types.py from compiler/report/loops.py: change it there, and run the script again.

/** A read or a write of one buffer: `index` is the element offset as a formula of the loop variables. */
export interface Access {
  /** The buffer that is read or written. */
  buffer: string;
  /** The element offset as a formula of the loop variables, or that a call uses the whole buffer. */
  index: string;
  /** Bytes of the elements that are touched. Each element counts once. */
  bytes: number;
}

/** A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line. */
export interface LoopNode {
  /** Its name: the name of the buffer that it writes, or of its library call. */
  name: string;
  /** The kind of loop. extern is a library call. */
  kind: "pointwise" | "reduction" | "scan" | "scatter" | "extern" | "view";
  /** Trip counts of its loops, outermost first. */
  sizes: (number | string)[];
  /** Trip counts of its reduction loops. */
  reduction_sizes: (number | string)[];
  /** The dtype of what it writes, by torch's name. */
  dtype: string | null;
  /** Sizes of what it writes, outermost first. */
  shape: (number | string)[] | null;
  /** Its body, one operation a line. */
  body: string[];
  /** What it reads. */
  reads: Access[];
  /** What it writes. */
  writes: Access[];
  /** FX nodes of `aten` that it came from. */
  origins: string[];
  /** Lines of the snippet that it came from. */
  lines: number[];
  /** Whether no result of the graph depends on it. */
  dead: boolean;
  /** The buffer whose values a scatter begins with. */
  updates: string | null;
  /** The buffer that it fills a part of, with other nodes. */
  part_of: string | null;
  /** The code of a library call. view(buffer, shape, stride, offset) is a part of a buffer. */
  call: string | null;
  /** Whether it is an ATen call that we have no lowering for. */
  fallback: boolean;
}

/** A node that nothing had to be done for. It is one of `fx` if it is "dead", or a cast or a copy that returns its argument, which `aten` does not have; else it is one of `aten`. */
export interface Removed {
  /** Why nothing had to be done. */
  kind: "dead" | "common_subexpression" | "constant" | "view" | "cast" | "copy";
  /** The node that is gone. */
  node: string;
  /** The reason in a sentence. */
  because: string;
  /** Lines of the snippet that it came from. */
  lines: number[];
}

// Written by scripts/report_types.py from compiler/report/decisions.py: change it there, and run the script again.

/** One pair that the scheduler looked at: what it decided, and why, with numbers. */
export interface Decision {
  /** The first of the two, as a loop node. */
  a: string;
  /** The second of the two, as a loop node. */
  b: string;
  /** The round of the scheduler in which they were looked at. */
  round: number;
  /** Vertical if one reads what the other writes. Otherwise horizontal. */
  kind: "vertical" | "horizontal";
  /** Whether the two became one kernel. */
  verdict: "fused" | "refused";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  /** The reason in a sentence, with its numbers. */
  message: string;
  /** The numbers that the reason speaks of, by name. */
  numbers: Record<string, unknown>;
  /** What the cost model expects of the fusion. */
  score: Score | null;
  /** Lines of the snippet that the two came from. */
  lines: number[];
  /** The buffer that the verdict is about. */
  shared: string | null;
  /** Bytes of that buffer. */
  shared_bytes: number | null;
  /** The side of `a`, then the side of `b`. */
  sides: Side[];
  /** Whether both index expressions use the same loops. */
  same_loops: boolean;
  /** The loops that a fusion gave up, as formulas of the others. */
  change: string;
  /** The number of the unit that the fusion of two units made. */
  makes: number | null;
  /** A change under which the rules fuse the two. It was tried. */
  would_fuse_if: string;
}

/** Whether a convolution takes the products and sums of each channel, and the ReLU, that follow it. */
export interface FoldingDecision {
  /** Whether it was folded. */
  verdict: "folded" | "kept";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** The nodes of `aten`. The convolution is first, the ReLU last. */
  nodes: string[];
  /** Predicted time of the pass that is saved. */
  predicted_saved_us: number;
  /** Predicted microseconds to compute the filter in each call. */
  predicted_filter_us: number;
  /** Lines of the snippet that it is about. */
  lines: number[];
}

/** One term of an index expression with its sign: `512 * x0`, ` + x1`. `differs` marks what the other side of the decision does not have. */
export interface IndexTerm {
  /** The term with its sign. */
  text: string;
  /** Whether the other side does not have the term. */
  differs: boolean;
}

/** A copy into other strides at the edge of a region: `buffer` is made of `source` for `reader`. `bytes` are read and written by a kernel of its own; what is fused into the loop that makes `source` moves fewer. */
export interface LayoutConversion {
  /** The copy. */
  buffer: string;
  /** The tensor that is copied. */
  source: string;
  /** What the copy is for its reader. */
  what: "image" | "gradient" | "filter" | "argument" | "output";
  /** The node that needs it in these strides. */
  reader: string;
  /** Bytes that are read and written by a kernel of its own. */
  bytes: number;
}

/** How tensors lie around convolutions that hang together: channels-last, or as eager has them, and why. Or one that is a product of patches, or a loop. */
export interface LayoutDecision {
  /** How the convolutions are computed. */
  verdict: "channels_last" | "kept" | "loop" | "product";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** The convolutions, as nodes of `aten`. */
  convolutions: string[];
  /** The numbers that the reason speaks of, by name. */
  numbers: Record<string, unknown>;
  /** Predicted time of the library calls with tensors as in eager. */
  predicted_kept_us: number | null;
  /** Predicted time channels-last, with conversions, or of the product or loop. */
  predicted_moved_us: number | null;
  /** Buffers that are channels-last, or would be if it paid. */
  buffers: string[];
  /** Copies at the edges of the region. */
  conversions: LayoutConversion[];
  /** Lines of the snippet that it is about. */
  lines: number[];
}

/** A matrix that has to be copied for a padded product: `left`, `right` or `bias`, to have a border of zeros, or the `result`, to have eager's strides. `bytes` are read and written. */
export interface PaddingCopy {
  /** The node of `aten` that is copied. */
  node: string;
  /** What it is in the product. */
  what: "left" | "right" | "bias" | "result";
  /** Bytes that are read and written. */
  bytes: number;
}

/** Whether a matrix product is computed at sizes that eight divides, and why: a border of zeros is added to what it takes, and nobody reads what comes of that. Or several calls compute it ("apart"), each of rows that lie so far apart that they start in the same place of a vector of sixteen bytes. */
export interface PaddingDecision {
  /** How the product is computed. */
  verdict: "padded" | "apart" | "kept";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** The matrix product, as a node of `aten`. */
  product: string;
  /** Rows, inner size and columns of the product as it is written. */
  sizes: (number | string)[];
  /** Rows, inner size and columns of the padded product. */
  padded: (number | string)[];
  /** Predicted time at the sizes as written. */
  predicted_kept_us: number | null;
  /** Predicted time of the padded call or calls. */
  predicted_padded_us: number | null;
  /** Predicted time of the copies for it. */
  predicted_copies_us: number | null;
  /** Predicted time that padding saves. */
  predicted_saved_us: number | null;
  /** The matrices that have to be copied for it. */
  copies: PaddingCopy[];
  /** Lines of the snippet that it is about. */
  lines: number[];
}

/** Two kernels that share data and stayed apart. Each of their nodes was refused with one of the other's. */
export interface Refusal {
  /** Positions of the two in `kernels`, in the order of their launches. */
  kernels: [number, number];
  /** Positions in `decisions`, one for each pair of nodes. The first decided: it is about the largest groups of the two. The others are about fewer of their nodes. */
  decisions: number[];
  /** Bytes that the first of them could save, at most. */
  bytes: number;
}

/** One round of the scheduler: what it asked, and the fusion that it took as the best; at the end of all, those of small kernels that share launches. */
export interface Round {
  /** Number of the round, counted from 1. */
  number: number;
  /** The two units that were fused, and the number of the unit that they became. */
  fused: [number, number, number][];
  /** How many pairs the round refused. */
  refused: number;
  /** How many units there are after the round. */
  units: number;
}

/** What the cost model expects of a fusion. Both times are predictions, in microseconds. They have the gaps before and after a kernel, and what timing it adds. `predicted_us` of a kernel leaves both out. */
export interface Score {
  /** The rule that the fusion would be made by, such as vertical. */
  category: string;
  /** Bytes that the fusion does not have to read and write. */
  bytes_saved: number;
  /** How far apart the two are in the order of the loop nodes. */
  distance: number;
  /** Predicted microseconds of one kernel that holds both. */
  fused_us: number | null;
  /** Predicted microseconds of the two kernels, one after another. */
  unfused_us: number | null;
}

/** One side of a decision as it was when it was asked about: a group of nodes, or a library call. */
export interface Side {
  /** Number of the unit. See `rounds`. */
  unit: number;
  /** Its loops. Those of a reduction follow the bar. */
  space: string;
  /** Iterations of all its loops together: a number, or a formula of open sizes. */
  iterations: number | string | null;
  /** What the side does with the shared buffer. */
  does: "writes" | "reads" | "touches";
  /** Element of the shared buffer, as a formula. */
  index: IndexTerm[];
}

/** One thing that an option asked to be otherwise, and what came of it. */
export interface WhatIf {
  /** The option that asked. */
  option: "force" | "forbid" | "rules_off" | "largest_group" | "device_model";
  /** What was asked for: two nodes, a rule, a number or a device. */
  asked: string[];
  /** What became of it. */
  outcome: "done" | "refused" | "no effect" | "unknown name";
  /** The graph that has the two nodes. */
  graph: string | null;
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string | null;
  /** The outcome in a sentence. */
  message: string;
}

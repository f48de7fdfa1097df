// Written by scripts/report_types.py from compiler/report/capture.py: change it there, and run the script again.

/** One text of torch's own trace, as its log prints it; `chars` is its length before it was cut. */
export interface Artefact {
  name: string;
  title: string;
  text: string;
  chars: number;
}

/** One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after. */
export interface Compilation {
  id: string;
  function: string | null;
  line: number | null;
  graphs: string[];
  bytecode_before: string;
  bytecode_after: string;
  artefacts: Artefact[];
}

/** A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet. */
export interface FxNode {
  name: string;
  op: string;
  target: string;
  args: string[];
  text: string;
  shape: (number | string)[] | null;
  stride: (number | string)[] | null;
  dtype: string | null;
  bytes: number | null;
  lines: number[];
  module: string | null;
  dead: boolean;
}

/** One result or gradient of a whole trained function: errors of eager and compiled against it in float64. An error is null where the two cannot be compared. */
export interface GradientCheck {
  entry: string;
  /** "the result", or "the gradient of x". */
  name: string;
  eager_error: number | null;
  compiled_error: number | null;
  /** Whether rounding explains the error: see docs/measuring.md. */
  is_correct: boolean;
}

/** Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line. */
export interface GraphBreak {
  /** Dynamo's explanation, its first sentence. */
  reason: string;
  line: number | null;
  /** Dynamo's own name of it. */
  kind: string | null;
  /** Dynamo's own hints. */
  hint: string | null;
  /** Id of the kind of break, as in docs/graph_breaks.md. */
  category: string;
  /** The kind of break in words. */
  title: string;
  /** What would keep the graph whole, in one sentence. */
  remedy: string;
  /** The page of PyTorch's documentation on it. */
  url: string | null;
  /** The graphs that it ended. */
  before: string[];
  /** The graphs that ran next, where tracing was taken up again. */
  after: string[];
  /** How often tracing met it. */
  count: number;
}

/** A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms. */
export interface Guard {
  kind: string;
  name: string;
  expression: string;
  lines: number[];
  /** What it is about, as the snippet writes it: `n`, `x.size(0)`. */
  subject: string;
  /** The change of the input that fails it, such as `n` other than 6. */
  fails_when: string;
}

/** A compilation made because no earlier code of the function fitted the call: the guard that failed, and how. */
export interface Recompile {
  function: string;
  reason: string;
  line: number | null;
  /** The condition that failed, of the newest code there was. */
  guard: string | null;
  /** What it was about, as the snippet writes it. */
  subject: string | null;
  expected: string | null;
  actual: string | null;
  /** The graph that was made for the new value. */
  graph: string | null;
  /** What the new graph leaves open and the earlier one did not. */
  symbolic: string[];
}

/** Something that is computed better in another way: replaced, or kept and why. */
export interface Rewrite {
  /** Attention written by hand, or the mask or repeated heads of a call of torch's own; in a training step a sum of rows that hold one number, or where maxima over windows lie. */
  what: "attention" | "mask" | "heads" | "one-hot sum" | "picked numbers" | "pooling places";
  verdict: "replaced" | "kept";
  /** Id of the reason, as in docs/rewrites.md. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** What exactly it was found in, in this graph. */
  detail: string;
  /** What the author can do, where there is something. */
  remedy: string;
  /** The nodes of `fx` that were replaced. */
  nodes: string[];
  lines: number[];
}

/** A tensor that the forward graph keeps for the backward graph. */
export interface SavedTensor {
  /** The node of the forward graph that made it. */
  node: string;
  /** The input of the backward graph that it is. */
  input: string;
  /** An input or an output of the forward graph lives anyway; an activation is kept for this alone. */
  kind: "input" | "output" | "activation";
  shape: (number | string)[];
  dtype: string;
  bytes: number;
  lines: number[];
}

/** A size or a number that a graph leaves open, so that one graph serves every value in `range`. */
export interface Symbol {
  name: string;
  /** What it is, as the snippet writes it: `n`, `x.size(0)`. */
  source: string;
  /** Its value in the call that was traced. */
  value: string | null;
  range: string;
  line: number | null;
}

// Written by scripts/report_types.py from compiler/report/capture.py: change it there, and run the script again.

/** One text of torch's own trace, as its log prints it; `chars` is its length before it was cut. */
export interface Artefact {
  /** The artefact as torch's logs name it. */
  name: string;
  /** What it is, in words. */
  title: string;
  /** Its text, cut at a stated length. */
  text: string;
  /** Characters before it was cut. */
  chars: number;
}

/** One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after. */
export interface Compilation {
  /** Its id in torch's logs, such as 0/1: the frame, and how often it was compiled before. */
  id: string;
  /** The user's function that was compiled. Null if the function has no name. */
  function: string | null;
  /** The first line of that function in the snippet. */
  line: number | null;
  /** Names of the graphs that it gave. */
  graphs: string[];
  /** The function's bytecode, one instruction a line. */
  bytecode_before: string;
  /** The bytecode that Dynamo made of it, one instruction a line. */
  bytecode_after: string;
  /** What torch logged of this compilation. */
  artefacts: Artefact[];
}

/** A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet. */
export interface FxNode {
  /** Its name in the graph, such as mul_1. */
  name: string;
  /** FX's kind of node: placeholder, call_function, call_method, call_module, get_attr or output. */
  op: string;
  /** What it calls or stands for, such as aten.mul.Tensor. */
  target: string;
  /** Names of the nodes that it takes, in order. */
  args: string[];
  /** The node as one line of code. A long line is cut. */
  text: string;
  /** Sizes of its result, outermost first. Null if it is not a single tensor. */
  shape: (number | string)[] | null;
  /** Strides of its result, in elements. Null if it has none. */
  stride: (number | string)[] | null;
  /** The dtype of its result by torch's name, such as float32. */
  dtype: string | null;
  /** Bytes of all elements of its result. Null if a size is known only when it runs. */
  bytes: number | null;
  /** Lines of the snippet that it came from, the innermost call last. */
  lines: number[];
  /** Path of the innermost nn.Module that it ran in. */
  module: string | null;
  /** Whether no result of the graph depends on it. */
  dead: boolean;
}

/** One result or gradient of a whole trained function: errors of eager and compiled against it in float64. An error is null if the two cannot be compared. */
export interface GradientCheck {
  /** The function that was called. */
  entry: string;
  /** "the result", or "the gradient of x". */
  name: string;
  /** Relative error of eager against float64. Null if the two cannot be compared. */
  eager_error: number | null;
  /** Relative error of compiled against float64. Null if the two cannot be compared. */
  compiled_error: number | null;
  /** The largest error that rounding explains. Null in older reports. */
  allowed_error: number | null;
  /** Whether rounding explains the error. See docs/measuring.md. */
  is_correct: boolean;
}

/** Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line. */
export interface GraphBreak {
  /** Dynamo's explanation, its first sentence. */
  reason: string;
  /** The line of the snippet at which tracing stopped. */
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
  /** The graphs that ran next, if tracing started again. */
  after: string[];
  /** How often tracing met it. */
  count: number;
}

/** A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms. */
export interface Guard {
  /** Dynamo's kind of guard, such as TENSOR_MATCH. */
  kind: string;
  /** What is guarded, as Dynamo writes it, such as L['x']. */
  name: string;
  /** The condition, as code or in words. */
  expression: string;
  /** Lines of the snippet that it is about. */
  lines: number[];
  /** What it is about, as the snippet writes it: `n`, `x.size(0)`. */
  subject: string;
  /** The change of the input that fails it, such as `n` other than 6. */
  fails_when: string;
}

/** A compilation made because no earlier code of the function fitted the call: the guard that failed, and how. */
export interface Recompile {
  /** The user's function that was compiled again. */
  function: string;
  /** What the call had and the code did not allow, in a sentence. */
  reason: string;
  /** The line of the snippet that uses what the condition is about. */
  line: number | null;
  /** The condition that failed, in the newest code. */
  guard: string | null;
  /** What the condition is about, as the snippet writes it. */
  subject: string | null;
  /** What the guard asks for. */
  expected: string | null;
  /** What the call had instead. */
  actual: string | null;
  /** The graph that was made for the new value. */
  graph: string | null;
  /** What the new graph leaves open. The earlier graph did not. */
  symbolic: string[];
}

/** Something that is computed better in another way: replaced, or kept and why. */
export interface Rewrite {
  /** What was found: attention written by hand, a mask or repeated heads of torch's attention, or in a training step a sum of rows that hold one number, or the places of maxima. */
  what: "attention" | "mask" | "heads" | "one-hot sum" | "picked numbers" | "pooling places";
  /** Whether it was replaced. */
  verdict: "replaced" | "kept";
  /** Id of the reason, as in docs/rewrites.md. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** The calls of this graph in which it was found. */
  detail: string;
  /** What the author can do. Empty if there is nothing. */
  remedy: string;
  /** The nodes of `fx` that were replaced. */
  nodes: string[];
  /** Lines of the snippet that it is about. */
  lines: number[];
}

/** A tensor that the forward graph keeps for the backward graph. */
export interface SavedTensor {
  /** The node of the forward graph that made it. */
  node: string;
  /** The input of the backward graph that it is. */
  input: string;
  /** Inputs and outputs are alive anyway. An activation is kept for the backward graph alone. */
  kind: "input" | "output" | "activation";
  /** Its sizes, outermost first. */
  shape: (number | string)[];
  /** Its dtype by torch's name. */
  dtype: string;
  /** Bytes of all its elements. */
  bytes: number;
  /** Lines of the snippet that made it. */
  lines: number[];
}

/** A size or a number that a graph leaves open, so that one graph serves every value in `range`. */
export interface Symbol {
  /** The symbol, such as s0. */
  name: string;
  /** What it is, as the snippet writes it: `n`, `x.size(0)`. */
  source: string;
  /** Its value in the call that was traced. */
  value: string | null;
  /** The values that the graph serves, such as at least 2. */
  range: string;
  /** The line of the snippet that brings it in. */
  line: number | null;
}

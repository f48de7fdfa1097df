/** Which kernels compute which operations, and which operations are only another look at a tensor. Pure. */
import type { FxNode, Graph, Kernel } from "../report";

export interface Covering {
  /** Places, in launch order, of the kernels that compute an operation: several where it is computed again. */
  kernelsOf: ReadonlyMap<string, number[]>;
  /** The operations of each kernel, in the graph's order, by the kernel's place. */
  operationsOf: readonly string[][];
}

/** The loop nodes that a kernel computes: those that were fused into it, without those that only other kernels compute,
 * and nodes of other kernels that it computes again. */
export function computedBy(kernel: Kernel): string[] {
  const leftOut = new Set(kernel.left_out);
  return [...kernel.nodes.filter((node) => !leftOut.has(node)), ...kernel.computes_again];
}

const known = new WeakMap<Graph, { kernels: readonly Kernel[]; loops: Graph["loops"]; covering: Covering }>();

export function coveringOf(graph: Graph): Covering {
  const before = known.get(graph);
  if (before && before.kernels === graph.kernels && before.loops === graph.loops) return before.covering;
  const covering = findCovering(graph);
  known.set(graph, { kernels: graph.kernels, loops: graph.loops, covering });
  return covering;
}

function findCovering(graph: Graph): Covering {
  const order = new Map(graph.aten.map((node, place) => [node.name, place]));
  const originsOfLoop = new Map(graph.loops.map((loop) => [loop.name, loop.origins]));
  const kernelsOf = new Map<string, number[]>();
  const operationsOf = graph.kernels.map((kernel, place) => {
    const names = new Set([...kernel.origins, ...computedBy(kernel).flatMap((loop) => originsOfLoop.get(loop) ?? [])]);
    const operations = [...names].filter((name) => order.has(name)).sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0));
    for (const name of operations) {
      const places = kernelsOf.get(name);
      if (places) places.push(place);
      else kernelsOf.set(name, [place]);
    }
    return operations;
  });
  return { kernelsOf, operationsOf };
}

const VIEWS: ReadonlySet<string> = new Set([
  "getitem", "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "numpy_T", "T", "mT", "expand", "slice", "select",
  "unsqueeze", "squeeze", "alias", "detach", "split", "split_with_sizes", "unbind", "chunk", "diagonal", "as_strided", "flatten",
  "unflatten", "unfold", "view_as", "expand_as", "swapaxes", "movedim", "narrow", "size", "sym_size",
]);

/** `aten.sum.dim_IntList` reads as `sum`; the whole target is in the title. */
export function shortTarget(node: FxNode): string {
  if (isInput(node) || node.op === "output") return node.name;
  const parts = node.target.split(".");
  const isOverload = parts.length > 2 && parts[0] === "aten";
  return (isOverload ? parts[1] : parts.at(-1)) ?? node.target;
}

export function isInput(node: FxNode): boolean {
  return node.op === "placeholder" || node.op === "get_attr";
}

/** Names of the nodes that are another look at a tensor and became no loop: nothing is computed for them. */
export function viewsOf(graph: Graph, nodes: readonly FxNode[]): ReadonlySet<string> {
  const views = new Set(nodes.filter((node) => !isInput(node) && node.op !== "output" && VIEWS.has(shortTarget(node))).map((node) => node.name));
  // A copy that a view became is a loop of its own.
  for (const loop of graph.loops) {
    if (loop.kind !== "extern" && loop.kind !== "view" && loop.origins.length > 0 && loop.origins.every((origin) => views.has(origin))) {
      for (const origin of loop.origins) views.delete(origin);
    }
  }
  return views;
}

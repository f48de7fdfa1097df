/** Finds nodes and kernels of all graphs by name, operation, kernel, module or line. Pure. */
import { type Ref, refsOf } from "../links";
import type { Graph } from "../report";
import { coveringOf, shortTarget } from "./covering";

export interface Hit {
  ref: Ref;
  graph: string;
  /** A node of the graph that it is about: what the map goes to. */
  node: string;
  label: string;
}

interface Entry extends Hit {
  words: string;
  lines: readonly number[];
}

const known = new WeakMap<Graph, Map<string, Entry[]>>();

function entriesOf(graph: Graph, level: "aten" | "fx"): Entry[] {
  let levels = known.get(graph);
  if (!levels) known.set(graph, (levels = new Map()));
  let entries = levels.get(level);
  if (!entries) levels.set(level, (entries = makeEntries(graph, level)));
  return entries;
}

function makeEntries(graph: Graph, level: "aten" | "fx"): Entry[] {
  const refs = refsOf(graph);
  const covering = coveringOf(graph);
  const kernels = level === "fx" ? [] : graph.kernels.flatMap((kernel, place) => {
    const node = covering.operationsOf[place]?.[0];
    return node ? [{ ref: refs.kernel(place), graph: graph.name, node, label: `K${place + 1} ${kernel.name}`, words: `k${place + 1} ${kernel.name}`.toLowerCase(), lines: [] }] : [];
  });
  const nodes = (level === "aten" ? graph.aten : graph.fx).map((node) => ({
    ref: level === "aten" ? refs.aten(node.name) : refs.fx(node.name),
    graph: graph.name,
    node: node.name,
    label: node.name,
    words: [node.name, shortTarget(node), node.target, node.module ?? ""].join(" ").toLowerCase(),
    lines: node.lines,
  }));
  return [...kernels, ...nodes];
}

/** One that is called so comes before one whose name begins so, and both before a kernel that is named after all of its
 *  operations. */
function rank({ words }: Entry, wanted: string): number {
  const each = words.split(" ");
  return each.includes(wanted) ? 0 : each.some((word) => word.startsWith(wanted)) ? 1 : 2;
}

/**
 * `line 12` finds by the line; other text is looked for in names, operations, kernels and modules. Where none has it, the
 * operations of the lines of the snippet that have it are found: `softmax`, though it became an attention.
 */
export function search(graphs: readonly Graph[], level: "aten" | "fx", query: string, source = ""): Hit[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return [];
  const line = /^line\s*(\d+)$/.exec(wanted)?.[1];
  const all = graphs.flatMap((graph) => entriesOf(graph, graph.aten.length > 0 ? level : "fx"));
  const named = line === undefined ? all.filter((entry) => entry.words.includes(wanted)) : [];
  if (named.length > 0) return named.sort((one, other) => rank(one, wanted) - rank(other, wanted));
  const lines = line === undefined ? source.split("\n").flatMap((text, place) => (text.toLowerCase().includes(wanted) ? [place + 1] : [])) : [Number(line)];
  return all.filter((entry) => entry.lines.some((one) => lines.includes(one)));
}

/** What moves between memory and a device: sentences about it, and which edge of a drawn graph carries what. Pure. */
import * as format from "./format";
import type { EdgeTraffic, FxNode, Graph, TensorTraffic } from "./report";

export const FATES: Record<EdgeTraffic["fate"], string> = {
  memory: "through memory",
  register: "stays in a register",
  read_saved: "written for others, not read again",
  recomputed: "computed again, not read",
  shared_read: "read with another node's",
};

/** Whether fusion spared at least one of the two: the write, or this reader's read. */
export function isSaved(edge: EdgeTraffic): boolean {
  return edge.fate !== "memory";
}

/** What an edge would have cost, and what became of that. */
export function edgeSentence(edge: EdgeTraffic): string {
  const from = edge.producer === null || edge.producer === edge.tensor ? edge.tensor : `${edge.tensor} of ${edge.producer}`;
  const write = edge.written_bytes > 0 ? `a write of ${format.bytes(edge.written_bytes)}, once for all its readers, and ` : "";
  const cost = `Through memory it costs ${write}a read of ${format.bytes(edge.read_bytes)}.`;
  return `${from} → ${edge.consumer}. ${cost} ${OUTCOMES[edge.fate](edge)}`;
}

const OUTCOMES: Record<EdgeTraffic["fate"], (edge: EdgeTraffic) => string> = {
  memory: (edge) => (edge.producer === null ? "It is an input, and is read." : "It is written and read."),
  register: () => "Fused, it stays in a register: neither happens.",
  read_saved: () => "Fused, the value stays in a register and is not read. It is still written, since others need it.",
  recomputed: () => "Its reader computes the value itself instead of reading it.",
  shared_read: (edge) =>
    edge.saved_read_bytes === edge.read_bytes
      ? "Its kernel reads these elements anyway, for another node."
      : `Its kernel reads ${format.bytes(edge.read_bytes - edge.saved_read_bytes)} of that: the rest is read anyway, or not needed.`,
};

export interface Share {
  tensor: string;
  bytes: number;
}

export function readsOf(tensors: TensorTraffic[]): Share[] {
  return tensors.filter((one) => one.read_bytes > 0).map((one) => ({ tensor: one.tensor, bytes: one.read_bytes }));
}

export function writesOf(tensors: TensorTraffic[]): Share[] {
  return tensors.filter((one) => one.written_bytes > 0).map((one) => ({ tensor: one.tensor, bytes: one.written_bytes }));
}

/** Eager's tensors are called after nodes of Dynamo's graph: `mul.2` is the second result of `mul`. */
export function fxNodeOf(tensor: string): string {
  return tensor.replace(/^gradient_/, "").replace(/\.\d+$/, "");
}

const found = new WeakMap<Graph, Map<string, EdgeTraffic[]>>();

/** What each edge of the ATen graph carries, by `from to`: views move nothing, so they are looked through. */
export function trafficOfEdges(graph: Graph): ReadonlyMap<string, EdgeTraffic[]> {
  let answer = found.get(graph);
  if (!answer) found.set(graph, (answer = findTraffic(graph)));
  return answer;
}

function findTraffic(graph: Graph): Map<string, EdgeTraffic[]> {
  const nodes = new Map(graph.aten.map((node) => [node.name, node]));
  const loopsOf = new Map<string, Set<string>>();
  for (const loop of graph.loops) {
    for (const origin of loop.origins) loopsOf.set(origin, (loopsOf.get(origin) ?? new Set()).add(loop.name));
  }
  const into = new Map<string, EdgeTraffic[]>();
  for (const edge of graph.traffic?.edges ?? []) into.set(edge.consumer, [...(into.get(edge.consumer) ?? []), edge]);
  const answer = new Map<string, EdgeTraffic[]>();
  const within = new Set<EdgeTraffic>();
  for (const node of graph.aten) {
    const arriving = [...(loopsOf.get(node.name) ?? [])].flatMap((loop) => into.get(loop) ?? []);
    for (const argument of arriving.length > 0 ? node.args : []) {
      const makers = makersOf(argument, nodes, loopsOf);
      const carried = arriving.filter((edge) => makers.has(edge.producer ?? edge.tensor));
      // A node may be several loops, such as a library call and the sum of its bias, which is fused with the readers. What
      // moves between the two moves once, however many read the sum.
      if (carried.every(isSaved)) {
        const between = carried.flatMap(({ producer }) => into.get(producer ?? "") ?? []).filter((edge) => makers.has(edge.producer ?? "") && !within.has(edge));
        between.forEach((edge) => within.add(edge));
        carried.push(...between);
      }
      if (carried.length > 0) answer.set(`${argument} ${node.name}`, carried);
    }
  }
  return answer;
}

/** The loops, or the input, behind a node of the ATen graph; a view has none of its own, so those behind it. */
function makersOf(name: string, nodes: ReadonlyMap<string, FxNode>, loopsOf: ReadonlyMap<string, Set<string>>): Set<string> {
  const makers = new Set<string>();
  const open = [name];
  const seen = new Set<string>();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    const loops = loopsOf.get(next);
    const node = nodes.get(next);
    if (loops) loops.forEach((loop) => makers.add(loop));
    else if (node?.op === "placeholder" || node?.op === "get_attr") makers.add(next);
    else open.push(...(node?.args ?? []));
  }
  return makers;
}

/** From a report's graph to what is drawn: nodes, edges, and one box for each kernel. Pure; no layout, no DOM. */
import * as format from "../format";
import { type GraphRefs, type Links, loopsBehind, type Ref, refsOf } from "../links";
import { edgeSentence, isSaved, trafficOfEdges } from "../moved";
import type { EdgeTraffic, FxNode, Graph } from "../report";
import { stakeOf, togetherIn } from "../stake";

/** Above this many nodes a kernel is drawn as one node, until it is opened. */
export const COLLAPSE_ABOVE = 150;

export interface MapNode {
  id: string;
  ref: Ref;
  label: string;
  detail: string;
  role: "input" | "operation" | "output" | "group";
  /** Places, in launch order, of the kernels that cover this node: several where it is computed again. */
  kernels: number[];
  dead: boolean;
  title: string;
  width: number;
  height: number;
}

export interface MapEdge {
  from: string;
  to: string;
  bytes: number;
  /** "plain" where nothing moves: a view, or what a dead node would read. */
  kind: "memory" | "register" | "plain";
  /** What it carries, where that is counted: several tensors, of an operation that became several loops. */
  traffic: EdgeTraffic[];
  ref: Ref | undefined;
  title: string;
}

/** A pair that was refused, between the nodes where its two sides meet. */
export interface MapRefusal {
  from: string;
  to: string;
  ref: Ref;
  title: string;
}

export interface MapGraph {
  nodes: MapNode[];
  edges: MapEdge[];
  refusals: MapRefusal[];
  /** Ids of the nodes in each kernel's box, by the kernel's place. */
  boxes: Map<number, string[]>;
  collapsed: boolean;
}

/** More would hide the graph; the table of decisions has them all. */
const REFUSALS_AT_MOST = 5;

/** Between two kernels of a large graph run many tensors. */
const SENTENCES_AT_MOST = 6;

const CHARACTER = 6.9;

/** `aten.sum.dim_IntList` reads as `sum`; the whole target is in the title. */
export function shortTarget(node: FxNode): string {
  if (node.op === "placeholder" || node.op === "output" || node.op === "get_attr") return node.name;
  const parts = node.target.split(".");
  const isOverload = parts.length > 2 && parts[0] === "aten";
  return (isOverload ? parts[1] : parts.at(-1)) ?? node.target;
}

export function mapOf(
  graph: Graph,
  level: "aten" | "fx",
  links: Links,
  opened: ReadonlySet<number> = new Set(),
): MapGraph {
  const nodes = level === "aten" ? graph.aten : graph.fx;
  const toRef = level === "aten" ? refsOf(graph).aten : refsOf(graph).fx;
  const collapsed = nodes.length > COLLAPSE_ABOVE;
  const drawn = new Map<string, MapNode>();
  const idOf = new Map<string, string>();
  const boxes = new Map<number, string[]>();

  for (const node of nodes) {
    const kernels = links.numbersOf(toRef(node.name), "kernel");
    const [home] = kernels;
    // A Dynamo node is tied to kernels by its line alone: only an unambiguous tie puts it into a box.
    const isBoxed = home !== undefined && (level === "aten" || kernels.length === 1);
    if (collapsed && isBoxed && !opened.has(home)) {
      const id = `group${home}`;
      idOf.set(node.name, id);
      addToGroup(drawn, id, home, graph);
      continue;
    }
    idOf.set(node.name, node.name);
    drawn.set(node.name, drawnNode(node, toRef(node.name), kernels));
    if (isBoxed) boxes.set(home, [...(boxes.get(home) ?? []), node.name]);
  }
  const refusals = level === "aten" ? refusalsOf(graph, idOf) : [];
  const traffic = level === "aten" ? trafficOfEdges(graph) : new Map<string, EdgeTraffic[]>();
  const isCounted = traffic.size > 0;
  return { nodes: [...drawn.values()], edges: edgesOf(refsOf(graph), nodes, idOf, drawn, isCounted ? traffic : null), refusals, boxes, collapsed };
}

function drawnNode(node: FxNode, item: Ref, kernels: number[]): MapNode {
  const label = shortTarget(node);
  const detail = [format.shape(node.shape), format.dtype(node.dtype)].filter(Boolean).join(" ");
  const role = node.op === "output" ? "output" : node.op === "placeholder" || node.op === "get_attr" ? "input" : "operation";
  const title = [node.text || node.target, detail && `${detail}, ${format.bytes(node.bytes)}`, node.module, node.dead && "dead: no result uses it"];
  return {
    id: node.name,
    ref: item,
    label,
    detail,
    role,
    kernels,
    dead: node.dead,
    title: title.filter(Boolean).join("\n"),
    width: Math.max(46, Math.max(label.length * CHARACTER, detail.length * 5.7) + 20),
    height: detail ? 34 : 24,
  };
}

function addToGroup(drawn: Map<string, MapNode>, id: string, place: number, graph: Graph): void {
  const kernel = graph.kernels[place];
  const group = drawn.get(id);
  if (group) {
    group.detail = `${Number.parseInt(group.detail, 10) + 1} operations`;
    return;
  }
  const label = `K${place + 1} ${kernel?.name ?? ""}`.slice(0, 34);
  drawn.set(id, {
    id,
    ref: refsOf(graph).kernel(place),
    label,
    detail: "1 operations",
    role: "group",
    kernels: [place],
    dead: false,
    title: `${kernel?.name ?? ""}\nclick to see its operations`,
    width: Math.max(110, label.length * CHARACTER + 22),
    height: 34,
  });
}

function edgesOf(refs: GraphRefs, nodes: FxNode[], idOf: Map<string, string>, drawn: Map<string, MapNode>, traffic: ReadonlyMap<string, EdgeTraffic[]> | null): MapEdge[] {
  const edges = new Map<string, MapEdge>();
  const bytesOf = new Map(nodes.map((node) => [node.name, node.bytes ?? 0]));
  for (const node of nodes) {
    for (const argument of node.args) {
      const from = idOf.get(argument);
      const to = idOf.get(node.name);
      if (!from || !to || from === to) continue;
      const key = `${from} ${to}`;
      const known = edges.get(key);
      const carried = [...new Set([...(known?.traffic ?? []), ...(traffic?.get(`${argument} ${node.name}`) ?? [])])];
      const bytes = Math.max(known?.bytes ?? 0, bytesOf.get(argument) ?? 0);
      edges.set(key, { from, to, bytes, ...carrying(refs, carried, traffic !== null, drawn.get(from), drawn.get(to)) });
    }
  }
  return [...edges.values()];
}

/** The tensor with most bytes speaks for an edge; where nothing is counted, the kernels of both ends tell. */
function carrying(refs: GraphRefs, traffic: EdgeTraffic[], isCounted: boolean, source: MapNode | undefined, target: MapNode | undefined): Omit<MapEdge, "from" | "to" | "bytes"> {
  const [most] = [...traffic].sort((one, other) => other.read_bytes - one.read_bytes);
  const isInOneKernel = source?.kernels.some((place) => target?.kernels.includes(place)) ?? false;
  const staysInside = most ? traffic.every(isSaved) : isInOneKernel;
  const isPlain = isCounted && !most && !isInOneKernel && target?.role !== "output";
  return {
    traffic,
    kind: isPlain ? "plain" : staysInside ? "register" : "memory",
    ref: most && refs.edge(most.tensor, most.consumer),
    title: [...traffic.slice(0, SENTENCES_AT_MOST).map(edgeSentence), traffic.length > SENTENCES_AT_MOST && `and ${traffic.length - SENTENCES_AT_MOST} more`]
      .filter(Boolean)
      .join("\n"),
  };
}

/** The refusals that lasted, those with most bytes at stake, each drawn from the last node of `a` to the first of `b`. */
function refusalsOf(graph: Graph, idOf: Map<string, string>): MapRefusal[] {
  const order = new Map(graph.aten.map((node, index) => [node.name, index]));
  const originsOfLoop = new Map(graph.loops.map((loop) => [loop.name, loop.origins]));
  const originsOf = (name: string): string[] =>
    loopsBehind(name, graph)
      .flatMap((loop) => originsOfLoop.get(loop) ?? [])
      .filter((origin) => order.has(origin))
      .sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0));
  const refused = graph.decisions
    .map((decision, index) => ({ decision, index, stake: stakeOf(decision) }))
    .filter(({ decision, stake }) => decision.verdict === "refused" && stake > 0 && togetherIn(decision, graph).length === 0)
    .sort((one, other) => other.stake - one.stake);
  const drawn = new Map<string, MapRefusal>();
  for (const { decision, index } of refused) {
    const from = idOf.get(originsOf(decision.a).at(-1) ?? "");
    const to = idOf.get(originsOf(decision.b)[0] ?? "");
    const key = `${from} ${to}`;
    if (!from || !to || from === to || drawn.has(key) || drawn.size >= REFUSALS_AT_MOST) continue;
    drawn.set(key, { from, to, ref: refsOf(graph).decision(index), title: `not fused: ${decision.message}` });
  }
  return [...drawn.values()];
}

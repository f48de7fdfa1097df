/** Where on the map a ref is: the picture on screen, asked by whatever points at it. */
import { signal } from "@preact/signals";
import type { Box } from "../../graph/dot";
import type { Frame, Picture } from "../../graph/stack";
import { graphNameOf, kindOf, loopsBehind, nameIn, numberIn, type Ref, refsOf } from "../../links";
import type { Graph } from "../../report";
import { links, type Pair } from "../../state";
import { onScreen } from "./camera";

export const picture = signal<Picture | null>(null);

export function union(boxes: readonly Box[]): Box | null {
  if (boxes.length === 0) return null;
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  return { x, y, width: Math.max(...boxes.map((box) => box.x + box.width)) - x, height: Math.max(...boxes.map((box) => box.y + box.height)) - y };
}

export function boxOfNode(frame: Frame, id: string): Box | null {
  const node = frame.map.nodes.find((one) => one.id === id);
  const at = frame.layout.nodes[id];
  if (!node || !at) return null;
  return { x: frame.origin.x + at.x - node.width / 2, y: frame.origin.y + at.y - node.height / 2, width: node.width, height: node.height };
}

export function frameOf(graph: string | null): Frame | undefined {
  return picture.value?.frames.find((frame) => frame.map.graph === graph);
}

/** The last operation that came of a loop node, or the operation of that name. */
export function operationOf(graph: Graph, name: string): string | undefined {
  const [loop] = loopsBehind(name, graph).slice(-1);
  const origins = graph.loops.find((one) => one.name === loop)?.origins ?? [];
  return origins.at(-1) ?? (graph.aten.some((node) => node.name === name) ? name : undefined);
}

/** Nodes of one graph that a ref is about. */
function nodesOf(item: Ref, frame: Frame): string[] {
  const refs = refsOf(frame.graph);
  if (kindOf(item) === "aten" || kindOf(item) === "fx") return frame.map.idOf.has(nameIn(item)) ? [nameIn(item)] : [];
  if (kindOf(item) === "decision") {
    const decision = frame.graph.decisions[numberIn(item)];
    return decision ? [decision.a, decision.b].flatMap((side) => operationOf(frame.graph, side) ?? []) : [];
  }
  if (kindOf(item) === "edge") {
    const edge = frame.graph.traffic?.edges.find((one) => refs.edge(one.tensor, one.consumer) === item);
    return edge ? [edge.producer ?? edge.tensor, edge.consumer].flatMap((side) => operationOf(frame.graph, side) ?? []) : [];
  }
  const isDynamo = frame.map.nodes.some((node) => kindOf(node.ref) === "fx");
  return [...links.value.partnersOfKind(item, isDynamo ? "fx" : "aten")].filter((one) => graphNameOf(one) === frame.graph.name).map(nameIn);
}

/** The first graph that has it, and the nodes of it. A line may be of several graphs. */
export function locate(item: Ref): { frame: Frame; nodes: string[] } | null {
  const named = graphNameOf(item);
  const frames = named === null ? (picture.value?.frames ?? []) : [frameOf(named)].filter((one) => one !== undefined);
  for (const frame of frames) {
    const nodes = nodesOf(item, frame);
    if (nodes.length > 0) return { frame, nodes };
  }
  return null;
}

export function boxOf(item: Ref): Box | null {
  const found = locate(item);
  if (!found) return null;
  const cluster = kindOf(item) === "kernel" ? found.frame.layout.boxes[`k${numberIn(item)}`] : undefined;
  if (cluster) return { ...cluster, x: cluster.x + found.frame.origin.x, y: cluster.y + found.frame.origin.y };
  return boxOfNodes(found.frame, found.nodes);
}

export function boxOfNodes(frame: Frame, nodes: readonly string[]): Box | null {
  const ids = new Set(nodes.flatMap((name) => frame.map.idOf.get(name) ?? []));
  return union([...ids].flatMap((id) => boxOfNode(frame, id) ?? []));
}

export function boxOfPair({ graph, a, b }: Pair): Box | null {
  const frame = frameOf(graph);
  return frame ? boxOfNodes(frame, [a, b].flatMap((side) => operationOf(frame.graph, side) ?? [])) : null;
}

/** Where a ref is in the window now; null where the map does not show it. Reading it follows the map as it moves. */
export function anchorOf(item: Ref): DOMRect | null {
  const box = boxOf(item);
  return box && onScreen(box);
}

/** The same for a pair that the why card speaks of. */
export function anchorOfPair(asked: Pair): DOMRect | null {
  const box = boxOfPair(asked);
  return box && onScreen(box);
}

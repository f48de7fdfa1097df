/** The map as Graphviz reads it, and Graphviz's answer as the page draws it. Pure. */
import type { MapGraph } from "./map";

const POINTS_PER_INCH = 72;

export interface Layout {
  width: number;
  height: number;
  nodes: Record<string, { x: number; y: number }>;
  /** SVG path data, in the order of the map's edges. */
  edges: string[];
  boxes: { place: number; x: number; y: number; width: number; height: number }[];
}

export interface GraphvizJson {
  bb: string;
  objects?: { name: string; pos?: string; bb?: string }[];
  edges?: { id?: string; pos?: string }[];
}

/** Nodes are named by their place, so no name of a report can be read as Graphviz syntax. */
export function toDot(map: MapGraph): string {
  const index = new Map(map.nodes.map((node, place) => [node.id, place]));
  const large = map.nodes.length > 300;
  const lines = [
    "digraph {",
    "rankdir=TB; nodesep=0.22; ranksep=0.3; ordering=out;",
    // A large graph is worth a good drawing, not the best one: the best takes seconds.
    large ? "nslimit=2; nslimit1=2; mclimit=0.5; splines=line;" : "splines=spline;",
    "node [shape=box, fixedsize=true, label=\"\"]; edge [arrowsize=0.6];",
  ];
  for (const [place, node] of map.nodes.entries()) {
    const [width, height] = [node.width, node.height].map((size) => (size / POINTS_PER_INCH).toFixed(3));
    lines.push(`n${place} [width=${width}, height=${height}];`);
  }
  for (const [place, ids] of map.boxes) {
    const members = ids.map((id) => `n${index.get(id)};`).join(" ");
    lines.push(`subgraph cluster_${place} { margin=12; label=" "; fontsize=10; ${members} }`);
  }
  for (const [place, edge] of map.edges.entries()) {
    lines.push(`n${index.get(edge.from)} -> n${index.get(edge.to)} [id=e${place}];`);
  }
  return [...lines, "}"].join("\n");
}

const numbers = (text: string): number[] => text.split(/[\s,]+/).map(Number);

/** Graphviz's y grows upwards, the page's downwards. */
export function fromGraphviz(map: MapGraph, answer: GraphvizJson): Layout {
  const [, , width = 0, height = 0] = numbers(answer.bb);
  const layout: Layout = { width, height, nodes: {}, edges: map.edges.map(() => ""), boxes: [] };
  for (const object of answer.objects ?? []) {
    if (object.name.startsWith("cluster_") && object.bb) {
      const [left = 0, bottom = 0, right = 0, top = 0] = numbers(object.bb);
      const place = Number(object.name.slice("cluster_".length));
      layout.boxes.push({ place, x: left, y: height - top, width: right - left, height: top - bottom });
    } else if (object.pos) {
      const node = map.nodes[Number(object.name.slice(1))];
      const [x = 0, y = 0] = numbers(object.pos);
      if (node) layout.nodes[node.id] = { x, y: height - y };
    }
  }
  for (const edge of answer.edges ?? []) {
    if (edge.id && edge.pos) layout.edges[Number(edge.id.slice(1))] = pathOf(edge.pos, height);
  }
  return layout;
}

/** `e,x,y p0 p1 p2 p3 …` is an end point and a chain of cubic Bézier curves. */
function pathOf(position: string, height: number): string {
  let end = "";
  const points: string[] = [];
  for (const part of position.trim().split(/\s+/)) {
    const [x = 0, y = 0] = numbers(part.replace(/^[es],/, ""));
    const point = `${x.toFixed(1)},${(height - y).toFixed(1)}`;
    if (part.startsWith("e,")) end = point;
    else if (!part.startsWith("s,")) points.push(point);
  }
  const [start, ...rest] = points;
  return `M${start} C${rest.join(" ")}${end ? ` L${end}` : ""}`;
}

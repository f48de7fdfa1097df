/** The map as Graphviz reads it, and Graphviz's answer as the page draws it. Pure. */
import type { Cluster, MapGraph } from "./map";

const POINTS_PER_INCH = 72;
/** Parts of a line before the number of its bytes, best first: at its end a line reaches into the box of its reader. */
const NUMBER_STANDS_AT = [0.42, 0.34, 0.5, 0.58, 0.26, 0.66, 0.18, 0.74, 0.82];

/** Of what is said of equal layers, which takes room like a node of theirs: nothing else is drawn there. */
const CAPTION = { width: 132, height: 102 };

export interface Point {
  x: number;
  y: number;
}

export interface Box extends Point {
  width: number;
  height: number;
}

export interface Layout {
  width: number;
  height: number;
  /** Middles of nodes. */
  nodes: Record<string, Point>;
  /** SVG path data, and points of the line at which a number may stand, best first; in the order of the map's edges. */
  edges: { path: string; stops: Point[] }[];
  /** By the cluster's id; a layout in columns has none for kernels. */
  boxes: Record<string, Box>;
  /** Within the box of equal layers: where it is said how many there are. By the cluster's id. */
  captions: Record<string, Box>;
}

export interface GraphvizJson {
  bb: string;
  objects?: { name: string; pos?: string; bb?: string }[];
  edges?: { id?: string; pos?: string }[];
}

const inInches = (size: number): string => (size / POINTS_PER_INCH).toFixed(3);

/** Nodes and clusters are named by their place, so no name of a report can be read as Graphviz syntax. */
export function toDot(map: MapGraph): string {
  const index = new Map(map.nodes.map((node, place) => [node.id, place]));
  const isLarge = map.nodes.length > 200;
  const lines = [
    "digraph {",
    "rankdir=TB; nodesep=0.3; ranksep=0.46; ordering=out;",
    // A large graph is worth a good drawing, not the best one: the best takes seconds.
    isLarge ? "nslimit=2; nslimit1=2; mclimit=0.5; splines=line;" : "splines=spline;",
    'node [shape=box, fixedsize=true, label=""]; edge [arrowsize=0.6];',
  ];
  for (const [place, node] of map.nodes.entries()) {
    lines.push(`n${place} [width=${inInches(node.width)}, height=${inInches(node.height)}];`);
  }
  const subgraph = (cluster: Cluster): string => {
    const members = cluster.members.map((id) => `n${index.get(id)};`).join(" ");
    const place = map.clusters.indexOf(cluster);
    const caption = cluster.kind === "layers" ? `caption_${place} [width=${inInches(CAPTION.width)}, height=${inInches(CAPTION.height)}];` : "";
    const inner = map.clusters.filter((child) => child.parent === cluster.id).map(subgraph).join(" ");
    return `subgraph cluster_${place} { margin=${cluster.kind === "kernel" ? 10 : 16}; label=" "; fontsize=13; ${members} ${caption} ${inner} }`;
  };
  const ids = new Set(map.clusters.map((cluster) => cluster.id));
  lines.push(...map.clusters.filter(({ parent }) => parent === null || !ids.has(parent)).map(subgraph));
  for (const [place, edge] of map.edges.entries()) {
    lines.push(`n${index.get(edge.from)} -> n${index.get(edge.to)} [id=e${place}];`);
  }
  return [...lines, "}"].join("\n");
}

const numbers = (text: string): number[] => text.split(/[\s,]+/).map(Number);

/** Graphviz's y grows upwards, the page's downwards. */
export function fromGraphviz(map: MapGraph, answer: GraphvizJson): Layout {
  const [, , width = 0, height = 0] = numbers(answer.bb);
  const layout: Layout = { width, height, nodes: {}, edges: map.edges.map(() => ({ path: "", stops: [] })), boxes: {}, captions: {} };
  for (const object of answer.objects ?? []) {
    if (object.name.startsWith("cluster_") && object.bb) {
      const [left = 0, bottom = 0, right = 0, top = 0] = numbers(object.bb);
      const cluster = map.clusters[Number(object.name.slice("cluster_".length))];
      if (cluster) layout.boxes[cluster.id] = { x: left, y: height - top, width: right - left, height: top - bottom };
    } else if (object.pos) {
      const [, kind, place] = /^(\D+)(\d+)$/.exec(object.name) ?? [];
      const [x = 0, y = 0] = numbers(object.pos);
      const found = (kind === "n" ? map.nodes : map.clusters)[Number(place)];
      if (!found) continue;
      if (kind === "n") layout.nodes[found.id] = { x, y: height - y };
      else layout.captions[found.id] = { x: x - CAPTION.width / 2, y: height - y - CAPTION.height / 2, ...CAPTION };
    }
  }
  for (const edge of answer.edges ?? []) {
    if (edge.id && edge.pos) layout.edges[Number(edge.id.slice(1))] = curveOf(edge.pos, height);
  }
  return layout;
}

/** `e,x,y p0 p1 p2 p3 …` is an end point and a chain of cubic Bézier curves. */
function curveOf(position: string, height: number): Layout["edges"][number] {
  let end: Point | null = null;
  const points: Point[] = [];
  for (const part of position.trim().split(/\s+/)) {
    const [x = 0, y = 0] = numbers(part.replace(/^[es],/, ""));
    const point = { x, y: height - y };
    if (part.startsWith("e,")) end = point;
    else if (!part.startsWith("s,")) points.push(point);
  }
  const write = ({ x, y }: Point): string => `${x.toFixed(1)},${y.toFixed(1)}`;
  const [start, ...rest] = points;
  if (!start) return { path: "", stops: [] };
  return { path: `M${write(start)} C${rest.map(write).join(" ")}${end ? ` L${write(end)}` : ""}`, stops: NUMBER_STANDS_AT.map((part) => pointAt(points, part)) };
}

function pointAt(points: readonly Point[], part: number): Point {
  const curves = Math.max(1, Math.floor((points.length - 1) / 3));
  const along = curves * part;
  const first = Math.min(curves - 1, Math.floor(along));
  const [a, b, c, d] = points.slice(first * 3, first * 3 + 4);
  if (!a || !b || !c || !d) return points[0] ?? { x: 0, y: 0 };
  const t = along - first;
  const [wa, wb, wc, wd] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t ** 2 * (1 - t), t ** 3];
  return { x: wa * a.x + wb * b.x + wc * c.x + wd * d.x, y: wa * a.y + wb * b.y + wc * c.y + wd * d.y };
}

/**
 * A layout in columns that wrap, in the graph's order: for what Graphviz does not take. It follows a chain of thousands
 * of nodes by recursion, and its stack ends. Pure.
 */
import type { Box, Layout } from "./dot";
import type { MapGraph } from "./map";

const ROW_GAP = 16;
const COLUMN_GAP = 44;
/** Width by height of the whole. */
const ASPECT = 1.5;
const DEEPEST_FOR_GRAPHVIZ = 300;
const MOST_FOR_GRAPHVIZ = 600;

/** Whether a graph has to be laid out in columns. */
export function needsColumns(map: MapGraph): boolean {
  if (map.nodes.length > MOST_FOR_GRAPHVIZ) return true;
  const depth = new Map<string, number>();
  const sourcesOf = new Map<string, string[]>();
  for (const { from, to } of map.edges) sourcesOf.set(to, [...(sourcesOf.get(to) ?? []), from]);
  for (const { id } of map.nodes) depth.set(id, 1 + Math.max(0, ...(sourcesOf.get(id) ?? []).map((source) => depth.get(source) ?? 0)));
  return [...depth.values()].some((steps) => steps > DEEPEST_FOR_GRAPHVIZ);
}

export function inColumns(map: MapGraph): Layout {
  const rowHeight = Math.max(0, ...map.nodes.map((node) => node.height)) + ROW_GAP;
  const columnWidth = Math.max(0, ...map.nodes.map((node) => node.width)) + COLUMN_GAP;
  const rows = Math.max(1, Math.ceil(Math.sqrt((map.nodes.length * columnWidth) / (ASPECT * rowHeight))));
  const columns = Math.max(1, Math.ceil(map.nodes.length / rows));
  const layout: Layout = { width: columns * columnWidth, height: rows * rowHeight, nodes: {}, edges: [], boxes: {}, captions: {} };
  const boxes = new Map<string, Box>();
  map.nodes.forEach((node, place) => {
    const x = (Math.floor(place / rows) + 0.5) * columnWidth;
    const y = ((place % rows) + 0.5) * rowHeight;
    layout.nodes[node.id] = { x, y };
    boxes.set(node.id, { x: x - node.width / 2, y: y - node.height / 2, width: node.width, height: node.height });
  });
  layout.edges = map.edges.map((edge) => between(boxes.get(edge.from), boxes.get(edge.to)));
  return layout;
}

function between(from: Box | undefined, to: Box | undefined): Layout["edges"][number] {
  if (!from || !to) return { path: "", stops: [] };
  const start = { x: from.x + from.width / 2, y: from.y + from.height };
  const end = { x: to.x + to.width / 2, y: to.y };
  const stops = [{ x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 }];
  if (start.x === end.x && end.y - start.y <= 2 * ROW_GAP) return { path: `M${start.x},${start.y} L${end.x},${end.y}`, stops };
  const bend = 24;
  // Within a column a longer way goes beside the nodes between; to another column it leaves and arrives vertically.
  if (start.x === end.x) {
    const side = from.x - bend;
    const [low, high] = [from.y + from.height / 2, to.y + to.height / 2];
    return { path: `M${from.x},${low} C${side},${low} ${side},${high} ${to.x},${high}`, stops: [{ x: side + 6, y: (low + high) / 2 }] };
  }
  return { path: `M${start.x},${start.y} C${start.x},${start.y + bend} ${end.x},${end.y - bend} ${end.x},${end.y}`, stops };
}

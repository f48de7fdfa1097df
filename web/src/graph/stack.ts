/** All graphs of a report one above another, in the order they run, with what stands between them. Pure. */
import * as format from "../format";
import type { Graph, GraphBreak, Report } from "../report";
import type { Box, Layout } from "./dot";
import type { MapGraph } from "./map";

export const HEAD = 34;
export const PADDING = 22;
const GAP = 46;
const GAP_WITH_BREAK = 92;
const NARROWEST = 300;
const CHARACTER = 7.2;

export interface Frame extends Box {
  graph: Graph;
  map: MapGraph;
  layout: Layout;
  /** Where the layout begins within the picture. */
  origin: { x: number; y: number };
  title: string;
  detail: string;
}

export interface Between {
  y: number;
  height: number;
  found: GraphBreak | null;
}

export interface Picture {
  frames: Frame[];
  betweens: Between[];
  width: number;
  height: number;
}

/** Graphs are made as they run for the first time, unless the option `training` has each backward graph made with its
 * forward graph. Forward graphs that a break joins are then one call: their backward graphs run after all of them, the
 * last one first. */
export function inRunningOrder({ graphs, breaks, options }: Pick<Report, "graphs" | "breaks" | "options">): Graph[] {
  if (!options.training) return graphs;
  const joined = new Set(breaks.flatMap((found) => found.before.flatMap((before) => found.after.map((after) => `${before} ${after}`))));
  const backwardOf = new Map(graphs.filter((graph) => graph.phase === "backward").map((graph) => [graph.partner, graph]));
  const ordered: Graph[] = [];
  let pending: Graph[] = [];
  let last: Graph | null = null;
  const flush = (): void => {
    ordered.push(...pending.reverse());
    pending = [];
  };
  for (const graph of graphs) {
    if (graph.phase === "backward") continue;
    if (last && !joined.has(`${last.name} ${graph.name}`)) flush();
    ordered.push(graph);
    const backward = backwardOf.get(graph.name);
    if (backward) pending.push(backward);
    last = graph;
  }
  flush();
  return [...ordered, ...graphs.filter((graph) => !ordered.includes(graph))];
}

export function stack(report: Report, drawn: readonly { graph: Graph; map: MapGraph; layout: Layout }[]): Picture {
  const frames: Frame[] = [];
  const betweens: Between[] = [];
  let y = 0;
  drawn.forEach((one, place) => {
    const previous = drawn[place - 1];
    if (previous) {
      const found = breakBetween(report.breaks, previous.graph, one.graph);
      const height = found ? GAP_WITH_BREAK : GAP;
      betweens.push({ y, height, found });
      y += height;
    }
    const { title, detail } = nameOf(one.graph, drawn.length > 1);
    const width = Math.max(NARROWEST, one.layout.width + 2 * PADDING, (title.length + detail.length) * CHARACTER + 2 * PADDING);
    const height = one.layout.height + HEAD + 2 * PADDING;
    frames.push({ ...one, x: -width / 2, y, width, height, origin: { x: -one.layout.width / 2, y: y + HEAD + PADDING }, title, detail });
    y += height;
  });
  return { frames, betweens, width: Math.max(0, ...frames.map((frame) => frame.width)), height: y };
}

/** A break ends a forward graph; its backward graph may have run before the next one. */
function forwardOf(graph: Graph): string {
  return (graph.phase === "backward" && graph.partner) || graph.name;
}

function breakBetween(breaks: readonly GraphBreak[], before: Graph, after: Graph): GraphBreak | null {
  return (
    breaks.find((found) => found.before.includes(forwardOf(before)) && found.after.includes(after.name)) ??
    breaks.find((found) => found.before.includes(before.name) && after.phase !== "backward") ??
    null
  );
}

/** Of several graphs of a function each has its own name too, by which sentences speak of it. */
function nameOf(graph: Graph, isOneOfSeveral: boolean): { title: string; detail: string } {
  const details = [
    isOneOfSeveral && graph.function ? graph.name : "",
    graph.kernels.length > 0 ? format.count(graph.kernels.length, "kernel") : format.count((graph.aten.length > 0 ? graph.aten : graph.fx).length, "node"),
    graph.calls > 1 ? `called ${graph.calls.toLocaleString("en-US")} times` : graph.calls === 1 ? "called once" : "",
  ];
  const phase = graph.phase === "inference" ? "" : `, ${graph.phase}`;
  return { title: `${graph.function ?? graph.name}${phase}`, detail: details.filter(Boolean).join(", ") };
}

/**
 * What runs when, as bars on one axis: eager's calls above our kernels. Pure.
 *
 *     recorded one call of each, as torch's profiler saw it
 *     time     measured calls, and each kernel as it was measured alone; or, in lanes of their own, predictions
 *     bytes    what each launch moves, counted: the one axis that eager's single calls have too
 *
 * One lane has one kind of figure. Launches stand one after the other; gaps between them are not known.
 */
import { type Ref, refsOf } from "../../links";
import { contestant } from "../../format";
import type { Graph, Report } from "../../report";

export type Axis = "time" | "bytes";
export type Basis = "measured" | "predicted" | "counted";

export interface Bar {
  label: string;
  /** Microseconds or bytes. */
  from: number;
  length: number;
  ref: Ref | undefined;
  /** The kernel's place, for its colour; null of what is no kernel of ours. */
  place: number | null;
  hint: string;
}

export interface Lane {
  name: string;
  basis: Basis;
  /** Outer bars first, as in a flame graph. */
  rows: Bar[][];
}

export interface Timeline {
  lanes: Lane[];
  /** The end of the axis. */
  most: number;
  /** What is not on it, in sentences. */
  missing: string[];
}

interface Piece {
  label: string;
  length: number;
  ref: Ref | undefined;
  place: number | null;
  hint: string;
  /** What it is a part of. */
  group: string;
}

/** Pieces one after the other. */
function inOrder(pieces: readonly Piece[]): Bar[] {
  let at = 0;
  return pieces.map(({ label, length, ref, place, hint }) => {
    const bar = { label, from: at, length, ref, place, hint };
    at += length;
    return bar;
  });
}

/** A bar over each run of pieces of one group; none where all pieces are of one. */
function runsOf(pieces: readonly Piece[], refOf: (group: string) => Ref | undefined): Bar[] {
  const runs: Piece[] = [];
  for (const piece of pieces) {
    const last = runs.at(-1);
    if (last && last.group === piece.group) last.length += piece.length;
    else runs.push({ ...piece, label: piece.group, ref: refOf(piece.group), place: null, hint: piece.group });
  }
  return runs.length > 1 ? inOrder(runs) : [];
}

function rowsOf(pieces: readonly Piece[], refOf: (group: string) => Ref | undefined = () => undefined): Bar[][] {
  return [runsOf(pieces, refOf), inOrder(pieces)].filter((row) => row.length > 0);
}

const endOf = (lane: Lane): number => Math.max(0, ...lane.rows.flat().map((bar) => bar.from + bar.length));

/** By the module that the reader's line stands in, else by the line. */
function groupOf(module: string | null | undefined, lines: readonly number[]): string {
  return module ?? (lines.length > 0 ? `line ${lines.join(", ")}` : "");
}

function lineRef(group: string): Ref | undefined {
  const [, line] = /^line (\d+)$/.exec(group) ?? [];
  return line ? `line:${line}` : undefined;
}

export function bytesOf(graph: Graph, write: (bytes: number) => string): Timeline {
  const refs = refsOf(graph);
  const nodes = new Map(graph.fx.map((node) => [node.name, node]));
  const eager = (graph.traffic?.eager?.launches ?? []).map((launch): Piece => ({
    label: launch.name.replace(/^aten\./, ""),
    length: launch.bytes,
    ref: launch.node === null ? undefined : refs.fx(launch.node),
    place: null,
    hint: `${launch.name}: ${write(launch.bytes)}`,
    group: groupOf(nodes.get(launch.node ?? "")?.module, launch.lines),
  }));
  const ours = (graph.traffic?.fused?.launches ?? []).map((launch, place): Piece => ({
    label: launch.name,
    length: launch.bytes,
    ref: refs.kernel(place),
    place,
    hint: `K${place + 1} ${launch.name}: ${write(launch.bytes)}`,
    group: "",
  }));
  const lanes: Lane[] = [
    { name: "eager", basis: "counted", rows: rowsOf(eager, lineRef) },
    { name: "compiled", basis: "counted", rows: rowsOf(ours) },
  ];
  const shown = lanes.filter((lane) => lane.rows.length > 0);
  const missing = eager.length === 0 ? [graph.phase === "backward" ? "Eager's backward calls are counted with its forward graph." : "Eager's calls could not be counted."] : [];
  return { lanes: shown, most: Math.max(0, ...shown.map(endOf)), missing };
}

/** Whole calls are of all graphs together, so they stand there only where the graph is the only one. */
function callsOf(report: Report, write: (us: number) => string): Lane[] {
  return (report.timing?.contestants ?? []).map((one) => {
    const us = 1000 * one.median_ms;
    return { name: contestant(one.name), basis: "measured", rows: [[{ label: "a call", from: 0, length: us, ref: undefined, place: null, hint: `${contestant(one.name)}, a whole call: ${write(us)}, the median` }]] };
  });
}

function kernelsOf(graph: Graph, figure: "measured_us" | "predicted_us", write: (us: number) => string): Piece[] {
  const refs = refsOf(graph);
  return graph.kernels.flatMap((kernel, place) => {
    const us = kernel[figure];
    return us === null ? [] : [{ label: kernel.name, length: us, ref: refs.kernel(place), place, hint: `K${place + 1} ${kernel.name}: ${write(us)}`, group: "" }];
  });
}

/** Measured, on the device that ran. */
export function measuredOf(graph: Graph, report: Report, write: (us: number) => string): Timeline {
  const calls = report.graphs.length === 1 ? callsOf(report, write) : [];
  const pieces = kernelsOf(graph, "measured_us", write);
  const own: Lane[] = pieces.length > 0 ? [{ name: "kernels, each alone", basis: "measured", rows: rowsOf(pieces) }] : [];
  const lanes = [...calls, ...own];
  const left = graph.kernels.length - pieces.length;
  const missing = [
    ...(report.graphs.length > 1 && report.timing ? ["Whole calls are timed with all graphs together: see Timing."] : []),
    ...(left > 0 && pieces.length > 0 ? [`${left === 1 ? "1 library call was" : `${left} launches, library calls among them, were`} not timed alone.`] : []),
    ...(graph.disturbed === null ? [] : [`These times are disturbed. ${graph.disturbed}`]),
  ];
  return { lanes, most: Math.max(0, ...lanes.map(endOf)), missing };
}

/** Narrower bars than this share of the axis cannot be seen. */
const NARROWEST_BAR = 1 / 2000;

/**
 * One call of each as torch's profiler recorded it: eager above our graphs, what runs within an event below it. The
 * events of a track come by their beginning, the longer one first.
 */
export function recordedOf({ trace, graphs }: Report, write: (us: number) => string): Timeline {
  const most = Math.max(0, ...trace.map((event) => event.start_us + event.duration_us));
  const kept = trace.filter((event) => event.duration_us >= most * NARROWEST_BAR);
  const contestants = [...new Set(["eager", ...trace.map((event) => event.contestant)])];
  const lanes = contestants.flatMap((contestant) => {
    const events = kept.filter((event) => event.contestant === contestant);
    const graph = graphs.find((one) => one.name === contestant);
    const tracks = [...new Set(events.map((event) => event.track))];
    return tracks.map((track): Lane => {
      const rows: Bar[][] = [];
      let open: number[] = [];
      for (const { name, start_us: from, duration_us: length } of events.filter((event) => event.track === track)) {
        open = open.filter((end) => end > from);
        const kernel = graph && /^K(\d+) (.*)$/.exec(name);
        const place = kernel ? Number(kernel[1]) - 1 : null;
        const ref = graph && place !== null ? refsOf(graph).kernel(place) : undefined;
        (rows[open.length] ??= []).push({ label: kernel?.[2] ?? name.replace(/^aten::/, ""), from, length, ref, place, hint: `${name}: ${write(length)}` });
        open.push(from + length);
      }
      return { name: tracks.length > 1 ? `${contestant}, ${track}` : contestant, basis: "measured", rows };
    });
  });
  const left = trace.length - kept.length;
  return { lanes, most, missing: left > 0 ? [`${left === 1 ? "1 event is" : `${left} events are`} too short to be drawn.`] : [] };
}

/** What the cost model expects: of generated kernels only. */
export function predictedOf(graph: Graph, write: (us: number) => string): Timeline {
  const pieces = kernelsOf(graph, "predicted_us", write);
  const lanes: Lane[] = pieces.length > 0 ? [{ name: "kernels", basis: "predicted", rows: rowsOf(pieces) }] : [];
  const left = graph.kernels.length - pieces.length;
  return { lanes, most: Math.max(0, ...lanes.map(endOf)), missing: left > 0 && pieces.length > 0 ? [`What ${left === 1 ? "1 library call takes is" : `${left} library calls take is`} not predicted.`] : [] };
}

/** The stages that ran, one after the other: where the time of compiling went. */
export function stagesOf(report: Report, write: (us: number) => string): Lane | null {
  const ran = report.stages.filter((stage) => stage.status !== "skipped" && stage.ms > 0);
  if (ran.length === 0) return null;
  return { name: "exploration", basis: "measured", rows: [inOrder(ran.map((stage) => ({ label: stage.name, length: 1000 * stage.ms, ref: undefined, place: null, hint: `${stage.name}: ${write(1000 * stage.ms)}`, group: "" })))] };
}

/** Round steps from zero to `most`, about five of them. */
export function ticksUpTo(most: number): number[] {
  if (!(most > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(most / 5));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= most / 5) ?? power;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_unused, index) => index * step);
}

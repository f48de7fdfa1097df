/** What of an exploration can be taken along, and where it is. Pure but for `save`. */
import { contestant } from "../../format";
import type { Graph, Kernel, Report } from "../../report";

const API = "/api/v1/explorations";

export const documentOf = (id: string, format: "html" | "md"): string => `${API}/${encodeURIComponent(id)}.${format}`;

export const rawOf = (id: string): string => `${API}/${encodeURIComponent(id)}`;

/** What torch's profiler recorded, as a Chrome trace. */
export const recordedOf = (id: string): string => `${API}/${encodeURIComponent(id)}.trace.json`;

/** A Python file that runs one generated kernel alone, checks it and times it. */
export function reproducerOf(report: Report, graph: Graph, kernel: Kernel): string {
  const query = report.graphs.length > 1 ? `?${new URLSearchParams({ graph: graph.name }).toString()}` : "";
  return `${API}/${encodeURIComponent(report.id)}/kernels/${encodeURIComponent(kernel.name)}.py${query}`;
}

export interface TraceEvent {
  name: string;
  ph: "X" | "M";
  pid: number;
  tid: number;
  /** Microseconds. */
  ts?: number;
  dur?: number;
  args: Record<string, unknown>;
}

export interface Trace {
  displayTimeUnit: "ms";
  otherData: Record<string, string>;
  traceEvents: TraceEvent[];
}

const CALLS = 1;
const KERNELS = 2;

function named(pid: number, tid: number | null, name: string): TraceEvent {
  return { name: tid === null ? "process_name" : "thread_name", ph: "M", pid, tid: tid ?? 0, args: { name } };
}

/** The kernels of a graph, one after the other as they are launched. */
function eventsOf(graph: Graph, thread: number): TraceEvent[] {
  let at = 0;
  const events = graph.kernels.flatMap((kernel, place): TraceEvent[] => {
    if (kernel.measured_us === null) return [];
    const event: TraceEvent = {
      name: kernel.name,
      ph: "X",
      pid: KERNELS,
      tid: thread,
      ts: at,
      dur: kernel.measured_us,
      args: { kernel: `K${place + 1}`, nodes: kernel.nodes, lines: kernel.user_lines, bytes: kernel.bytes, "GB/s": kernel.gb_per_s },
    };
    at += kernel.measured_us;
    return [event];
  });
  return events.length > 0 ? [named(KERNELS, thread, graph.name), ...events] : [];
}

/**
 * What was measured as a Chrome trace, which Perfetto and chrome://tracing read; null where nothing was. Predictions
 * are no part of it, and nor are kernels whose times do not add up.
 */
export function traceOf(report: Report): Trace | null {
  const contestants = report.timing?.contestants ?? [];
  const calls = contestants.flatMap((one, thread): TraceEvent[] => [
    named(CALLS, thread, contestant(one.name)),
    { name: `${contestant(one.name)}: a call, median`, ph: "X", pid: CALLS, tid: thread, ts: 0, dur: 1000 * one.median_ms, args: { samples: one.samples_ms.length, "25 % (ms)": one.low_ms, "75 % (ms)": one.high_ms } },
  ]);
  const kernels = report.graphs.filter((graph) => graph.disturbed === null).flatMap(eventsOf);
  if (calls.length + kernels.length === 0) return null;
  const device = report.environment.device_name || report.environment.device;
  return {
    displayTimeUnit: "ms",
    otherData: {
      device,
      method: report.timing?.method ?? "",
      kernels: "Each kernel was timed alone, and stands here in launch order: gaps between launches were not measured.",
      exploration: report.id,
    },
    traceEvents: [
      ...(calls.length > 0 ? [named(CALLS, null, `calls on ${device}`), ...calls] : []),
      ...(kernels.length > 0 ? [named(KERNELS, null, `kernels on ${device}, each timed alone`), ...kernels] : []),
    ],
  };
}

/** Hands the browser a file. */
export function save(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

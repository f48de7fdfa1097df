/**
 * What each kernel reached, against what the device can do at most. Pure.
 *
 *     intensity    operations by byte moved
 *     reached      operations a second
 *     roof         the lesser of: peak of operations; peak bandwidth times intensity
 *
 * Operations and bytes are counted. Only kernels that were timed, on a device whose peaks are known, have a point; or,
 * as a picture of its own, only those with a predicted time.
 */
import type { Graph, Kernel, Report } from "../../report";
import { refsOf, type Ref } from "../../links";

/** Of the report: a server of an earlier version wrote none. */
type Peak = Report["environment"]["peaks"][number];

export interface Point {
  kernel: Kernel;
  place: number;
  ref: Ref;
  /** Operations by byte. */
  intensity: number;
  /** 10^9 operations a second. */
  gflopPerSecond: number;
  /** 10^9 bytes a second. */
  gbPerSecond: number;
  /** Percent of the roof above it. */
  percent: number;
  us: number;
}

export interface Roofline {
  basis: "measured" | "predicted";
  peak: Peak;
  points: Point[];
  /** Kernels that move bytes and compute nothing: they have no intensity. */
  withoutOperations: Point[];
  /** Launches whose operations, bytes or time are not known. */
  unknown: number;
}

/** The most that the device can do at this intensity, in 10^9 operations a second. */
export function roofAt(peak: Peak, intensity: number): number {
  return Math.min(peak.gflop_per_s, peak.gb_per_s * intensity);
}

/** Intensity from which on operations, not bytes, are the bound. */
export function ridgeOf(peak: Peak): number {
  return peak.gflop_per_s / peak.gb_per_s;
}

function pointOf(kernel: Kernel, place: number, us: number, graph: Graph, peak: Peak): Point {
  const flops = kernel.flops ?? 0;
  const gbPerSecond = kernel.bytes / us / 1e3;
  const intensity = flops / kernel.bytes;
  const gflopPerSecond = flops / us / 1e3;
  // A kernel that computes nothing is held against the bandwidth alone.
  const percent = flops > 0 ? (100 * gflopPerSecond) / roofAt(peak, intensity) : (100 * gbPerSecond) / peak.gb_per_s;
  return { kernel, place, ref: refsOf(graph).kernel(place), intensity, gflopPerSecond, gbPerSecond, percent, us };
}

export function rooflineOf(graph: Graph, report: Report, basis: "measured" | "predicted"): Roofline | null {
  // The first is of the device that ran; a second one, of another device, is of the one that decided.
  const peaks = report.environment.peaks ?? [];
  const peak = basis === "measured" ? peaks[0] : (peaks.find((one) => one.device === report.environment.decides_for) ?? peaks.at(-1));
  if (!peak || (basis === "measured" && graph.disturbed !== null)) return null;
  const timed = graph.kernels.flatMap((kernel, place) => {
    const us = basis === "measured" ? kernel.measured_us : kernel.predicted_us;
    const isKnown = basis === "predicted" || kernel.gb_per_s !== null;
    return us && isKnown && kernel.bytes && kernel.flops !== null ? [pointOf(kernel, place, us, graph, peak)] : [];
  });
  if (timed.length === 0) return null;
  return {
    basis,
    peak,
    points: timed.filter((point) => point.intensity > 0),
    withoutOperations: timed.filter((point) => point.intensity === 0),
    unknown: graph.kernels.length - timed.length,
  };
}

/** Above a roof that was assumed there is no share of it to tell: the device does more than that. */
export function isAbove({ percent }: Point, peak: Peak): boolean {
  return percent > 100 && !peak.is_measured;
}

export interface Scale {
  from: number;
  to: number;
  ticks: number[];
}

/** Whole powers of ten around the values, as an axis of logarithms. */
export function decades(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive))));
  return { from: 10 ** low, to: 10 ** high, ticks: Array.from({ length: high - low + 1 }, (_unused, step) => 10 ** (low + step)) };
}

/** Where a value stands on the axis, from 0 to 1. */
export function along(scale: Scale, value: number): number {
  return (Math.log10(value) - Math.log10(scale.from)) / (Math.log10(scale.to) - Math.log10(scale.from));
}

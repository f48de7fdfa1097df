/** Whether one time is shorter than another for a reader to rely on: the rule of `compiler/runtime/noise.py`. Pure. */
import * as format from "../../format";
import type { Contestant } from "../../report";

/** How well a figure repeats from run to run. */
const REPEATABILITY = 0.02;
/** Fewer samples show no spread of their own. */
export const FEWEST_SAMPLES = 4;
/** They are taken to be wrong by up to this factor. */
const UNKNOWN_SPREAD = 1.5;

export const RULE = "A difference counts where the ranges between the quartiles do not overlap and the medians differ by more than 2 %. Fewer than four samples are taken to be wrong by up to a factor of 1.5.";

function rangeOf({ samples_ms: samples, low_ms: low, high_ms: high }: Contestant): [number, number] {
  return samples.length >= FEWEST_SAMPLES ? [low, high] : [low / UNKNOWN_SPREAD, high * UNKNOWN_SPREAD];
}

export function isMeasurable(one: Contestant, other: Contestant): boolean {
  const [[low, high], [otherLow, otherHigh]] = [rangeOf(one), rangeOf(other)];
  const isClear = Math.abs(one.median_ms - other.median_ms) > REPEATABILITY * Math.min(one.median_ms, other.median_ms);
  return isClear && (high < otherLow || otherHigh < low);
}

/** `3.2× as fast as eager`, `1.3× as long as eager takes`, `no measurable difference from eager`. */
export function besideOf(one: Contestant, base: Contestant, baseName: string): string {
  if (!isMeasurable(one, base)) return `no measurable difference from ${baseName}`;
  return one.median_ms < base.median_ms ? `${format.ratio(base.median_ms / one.median_ms)} as fast as ${baseName}` : `takes ${format.ratio(one.median_ms / base.median_ms)} as long as ${baseName}`;
}

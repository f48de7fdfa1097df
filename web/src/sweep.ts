/** What the page works out of a sweep: the request's text, the curves of the plot, what an outcome is called. */
import type { NamedSize, Outcome, SweepResult, SweptSize } from "./report";

export interface SweepRequest {
  name: string;
  values: number[];
}

/** `N = 256, 1024, 4096` → the name and the values; null for an empty text. */
export function parseSweep(text: string): SweepRequest | null {
  if (!text.trim()) return null;
  const end = text.lastIndexOf("=");
  const values = text.slice(end + 1).split(/[\s,;]+/).filter(Boolean);
  if (end <= 0 || values.length < 2 || !values.every((value) => /^\d+$/.test(value))) {
    throw new Error(`“${text.trim()}” is not a list of sizes: write a size and two or more numbers, such as N = 256, 1024, 4096`);
  }
  return { name: text.slice(0, end).trim(), values: values.map(Number) };
}

/** What is wrong with the text, or null. */
export function sweepProblem(text: string): string | null {
  try {
    parseSweep(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export function sweepText(sweep: SweepRequest | null | undefined): string {
  return sweep ? `${sweep.name} = ${sweep.values.join(", ")}` : "";
}

/** Sizes to begin with: from an eighth of what is written to eight times as much, as far as they are whole. */
export function sweepAround({ name, value }: NamedSize): SweepRequest {
  const factors = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8];
  const values = factors.map((factor) => factor * value).filter((size) => Number.isInteger(size) && size > 0);
  return { name, values: values.length > 1 ? values : [value, value + 1] };
}

export interface Curve {
  id: "predicted" | "measured" | "eager" | "compiled";
  /** Size and microseconds. */
  points: [number, number][];
}

const FIGURES: Record<Curve["id"], (size: SweptSize) => number | null> = {
  predicted: (size) => size.predicted_us,
  measured: (size) => size.measured_us,
  eager: (size) => (size.eager_ms === null ? null : 1000 * size.eager_ms),
  compiled: (size) => (size.compiled_ms === null ? null : 1000 * size.compiled_ms),
};

/** Times over sizes; a curve that has no point is left out. Sizes and times are drawn by their logarithms, so 0 has no place. */
export function curvesOf(sweep: SweepResult): Curve[] {
  return (Object.keys(FIGURES) as Curve["id"][])
    .map((id) => ({
      id,
      points: sweep.sizes
        .map((size): [number, number | null] => [size.value, FIGURES[id](size)])
        .filter((point): point is [number, number] => point[0] > 0 && point[1] !== null && point[1] > 0),
    }))
    .filter((curve) => curve.points.length > 0);
}

export const isFlipping = (size: SweptSize): boolean => size.flips.length > 0;

/** An outcome in a word: what became of the two in the end, however the scheduler came to it. */
export function outcomeWord(outcome: Outcome | null): string {
  if (outcome === null) return "";
  return outcome.together ? "fused" : "apart";
}

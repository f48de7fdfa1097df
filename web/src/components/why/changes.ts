/** What an exploration changed beside another one, in words. */
import type { Comparison, Figure } from "../../api";
import * as format from "../../format";

export function valueOf(figure: Figure, number: number | null): string {
  if (number === null) return "";
  if (figure.unit === "bytes") return format.bytes(number);
  if (figure.unit === "us") return format.microseconds(number);
  if (figure.unit === "ms") return format.milliseconds(number);
  return number.toLocaleString("en-US");
}

const signOf = (change: number): string => (change > 0 ? "+" : "−");

/** `+1`, `−4.2 MB (−12.0 %)`, `no measurable difference`. */
export function changeOf(figure: Figure, withShare = true): string {
  if (figure.change === null) return "";
  if (figure.is_noise) return "no measurable difference";
  if (figure.change === 0) return "the same";
  const sign = signOf(figure.change);
  const share = figure.ratio === null || !withShare ? "" : ` (${sign}${Math.abs(100 * (figure.ratio - 1)).toFixed(1)} %)`;
  return `${sign}${valueOf(figure, Math.abs(figure.change))}${share}`;
}

export function figureNamed(beside: Comparison, kind: Figure["kind"], name: string): Figure | undefined {
  return beside.figures.find((figure) => figure.kind === kind && figure.name === name);
}

/** Generated kernels and library calls together, as the answer bar counts them. */
export function launches(beside: Comparison): Figure | null {
  const [made, calls] = ["generated kernels", "library calls"].map((name) => figureNamed(beside, "counted", name));
  if (!made || made.before === null || made.after === null) return null;
  const before = made.before + (calls?.before ?? 0);
  const after = made.after + (calls?.after ?? 0);
  return { ...made, name: "kernels", before, after, change: after - before, ratio: before ? after / before : null };
}

/** The figure of the answer bar with this id, beside the same of the other exploration. */
export function besideFigure(beside: Comparison, id: string): Figure | null {
  if (id === "kernels") return launches(beside);
  if (id === "bytes") return figureNamed(beside, "counted", "bytes moved") ?? null;
  if (id === "time") return figureNamed(beside, "measured", "compiled") ?? null;
  if (id === "predicted") return figureNamed(beside, "predicted", "generated kernels in a row") ?? null;
  return null;
}

export interface Told {
  text: string;
  isPredicted: boolean;
}

/** `2 kernels → 1`, `0.31 → 0.22 ms (measured)`, `−4.2 MB`: what was counted, measured and predicted, each apart. */
export function told(beside: Comparison): Told[] {
  const parts: Told[] = [];
  const kernels = launches(beside);
  if (kernels && kernels.before !== null && kernels.after !== null) {
    const same = kernels.change === 0 ? `as before, ${format.count(kernels.after, "kernel")}` : `${format.count(kernels.before, "kernel")} → ${kernels.after}`;
    parts.push({ text: same, isPredicted: false });
  }
  const measured = besideFigure(beside, "time");
  if (measured && measured.before !== null && measured.after !== null) {
    const times = `${valueOf(measured, measured.before)} → ${valueOf(measured, measured.after)}`;
    parts.push({ text: measured.is_noise ? "no measurable difference in time" : `${times} (measured)`, isPredicted: false });
  }
  const moved = besideFigure(beside, "bytes");
  if (moved && moved.change !== null) parts.push({ text: moved.change === 0 ? "as many bytes" : changeOf(moved, false), isPredicted: false });
  const predicted = besideFigure(beside, "predicted");
  if (predicted && predicted.before !== null && predicted.after !== null && predicted.change) {
    parts.push({ text: `${valueOf(predicted, predicted.before)} → ${valueOf(predicted, predicted.after)} (predicted)`, isPredicted: true });
  }
  return parts;
}

/** `1 group of kernels differs, 2 kernels have the same nodes`. */
export function kernelsInWords({ kernels, unchanged }: Pick<Comparison, "kernels" | "unchanged">): string {
  const differ = kernels.length === 1 ? "differs" : "differ";
  const have = unchanged.length === 1 ? "has" : "have";
  return `${format.count(kernels.length, "group")} of kernels ${differ}, ${format.count(unchanged.length, "kernel")} ${have} the same nodes`;
}

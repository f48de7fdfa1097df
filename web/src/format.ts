/** Numbers as people read them. A missing number is an empty string here and is left out by the views. */

export type Figure = number | null | undefined;

function significant(value: number, digits = 3): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10 ** digits) return Math.round(value).toLocaleString("en-US");
  return Number(value.toPrecision(digits)).toString();
}

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** Decimal units, as in the data sheets that a bandwidth is compared with. */
export function bytes(value: Figure): string {
  if (value == null) return "";
  let unit = 0;
  let scaled = value;
  while (Math.abs(scaled) >= 1000 && unit < BYTE_UNITS.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${significant(scaled)} ${BYTE_UNITS[unit]}`;
}

/** Terms of a sum in one unit, with equally many decimals: a reader who adds them up finds the result, to the last digit but one. */
export function bytesInSum(values: readonly number[]): string[] {
  const counts = values.filter((value) => value > 0);
  const unit = Math.min(BYTE_UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, ...counts)) / 3)));
  const least = Math.min(...counts) / 1000 ** unit;
  const decimals = unit === 0 ? 0 : Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(least))));
  return values.map((value) => `${(value / 1000 ** unit).toFixed(decimals)} ${BYTE_UNITS[unit]}`);
}

const PREFIXES = ["", "k", "M", "G", "T", "P"] as const;

/** `1.3 Mflop`; with `each` also `67 Tflop/s`. */
export function operations(value: Figure, each = ""): string {
  if (value == null) return "";
  let scaled = value;
  let prefix = 0;
  while (Math.abs(scaled) >= 1000 && prefix < PREFIXES.length - 1) {
    scaled /= 1000;
    prefix += 1;
  }
  return `${significant(scaled)} ${PREFIXES[prefix]}flop${each}`;
}

export function milliseconds(value: Figure): string {
  if (value == null) return "";
  if (value < 1) return `${significant(value * 1000)} µs`;
  if (value < 10_000) return `${significant(value)} ms`;
  return `${significant(value / 1000)} s`;
}

/** A sentence of the report, which is ASCII, as the page writes units. */
export function sentence(text: string): string {
  return text.replace(/(\d) us\b/g, "$1 µs");
}

export function microseconds(value: Figure): string {
  return value == null ? "" : milliseconds(value / 1000);
}

/** A figure without a unit. */
export function figure(value: Figure): string {
  return value == null ? "" : significant(value, 2);
}

/** 10^9 bytes a second. */
export function rate(value: Figure): string {
  return value == null ? "" : significant(value, 2);
}

/** `38 %`; what is not nothing is never `0 %`. */
export function percent(value: number): string {
  return value > 0 && value < 0.5 ? "< 1 %" : `${value.toFixed(0)} %`;
}

/** `2.7×`; `1.07×` where another run gives that within a tenth: `factor` says by how much it may differ, either way. */
export function ratio(value: Figure, factor: Figure = null): string {
  if (value == null) return "";
  const isExact = factor != null && factor < 1.1 && value < 10;
  return `${isExact ? value.toFixed(2) : significant(value, 2)}×`;
}

/** `± 1.7 %`: by how much another run may differ. */
export function plusMinus(share: number): string {
  const percent = 100 * share;
  if (percent >= 100) return "± over 100 %";
  return `± ${percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** `3.4× ± 54 %`, `22×, 7.3–68×`: a ratio and where that of another run may be, in little room. */
export function ratioWithin(value: number, factor: Figure): [ratio: string, within: string] {
  const told = ratio(value, factor);
  if (factor == null) return [told, ""];
  return [told, factor < 2 ? ` ${within(factor)}` : `, ${significant(value / factor, 2)}–${ratio(value * factor)}`];
}

/** `± 12 %`, `within a factor of 3.1`: how far the ratio of another run may be. A share of 100 % or more, of which one
 * half would lie below zero, says nothing of a ratio. */
export function within(factor: number): string {
  if (factor < 2) return plusMinus(factor - 1);
  return `within a factor of ${factor < 99.5 ? significant(factor, 2) : "100 or more"}`;
}

export function scientific(value: Figure): string {
  if (value == null) return "";
  return value === 0 ? "0" : value.toExponential(1).replace("e+", "e");
}

/** `1 kernel`, `1,024 launches`. */
export function count(value: Figure, noun: string): string {
  const plural = /(ch|s|x)$/.test(noun) ? `${noun}es` : `${noun}s`;
  return value == null ? "" : `${value.toLocaleString("en-US")} ${value === 1 ? noun : plural}`;
}

export function shape(sizes: readonly (number | string)[] | null | undefined): string {
  if (sizes == null) return "";
  if (sizes.length === 0) return "scalar";
  // Of a sum only its last term would seem to be multiplied.
  return sizes.map((size) => (sizes.length > 1 && / [+-] /.test(`${size}`) ? `(${size})` : size)).join("×");
}

const SHORT_DTYPES: Record<string, string> = {
  float64: "f64", float32: "f32", float16: "f16", bfloat16: "bf16",
  int64: "i64", int32: "i32", int16: "i16", int8: "i8", uint8: "u8", bool: "bool",
};

export function dtype(name: string | null | undefined): string {
  if (!name) return "";
  const bare = name.replace(/^torch\./, "");
  return SHORT_DTYPES[bare] ?? bare;
}

export function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}

/** A long name without its middle, for where nothing else can cut it: its beginning and its end tell it apart. */
export function middle(name: string, most: number): string {
  if (name.length <= most) return name;
  const tail = Math.floor((most - 1) / 2);
  return `${name.slice(0, most - 1 - tail)}…${name.slice(name.length - tail)}`;
}

/** Ways to run the calls that may be asked for, by the names that the options have for them. */
export const CONTESTANTS: Record<string, string> = {
  peer: "TorchInductor",
  "inductor-default": "TorchInductor, default",
  "inductor-reduce-overhead": "TorchInductor, reduce-overhead",
  "inductor-max-autotune": "TorchInductor, max-autotune",
  aot_eager: "captured, not compiled (aot_eager)",
  cudagraphs: "CUDA graphs alone (cudagraphs)",
};

/** One way to run the calls, as the page calls it. */
export function contestant(name: string): string {
  return CONTESTANTS[name] ?? name;
}

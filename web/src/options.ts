/** What the options row says, and the request that it makes. */
import { signal } from "@preact/signals";
import type { ExplorationRequest, InputSpec } from "./api";
import { parseSweep, type SweepRequest, sweepText } from "./sweep";

export interface OptionFields {
  entry: string;
  inputs: string;
  device: string;
  target: string;
  mode: string;
  cuda_graphs: string;
  dynamic: string;
  training: string;
  trace: string;
  peer: boolean;
  peer_mode: string;
  /** Names with commas between. */
  contestants: string;
  timing: boolean;
  seed: string;
  refresh: boolean;
  sweep: string;
}

/** An empty field is left to the server: its defaults are not written down twice. */
export const NO_OPTIONS: OptionFields = {
  entry: "", inputs: "", device: "", target: "", mode: "", cuda_graphs: "", dynamic: "", training: "", trace: "",
  peer: false, peer_mode: "", contestants: "", timing: true, seed: "", refresh: false, sweep: "",
};

export const options = signal<OptionFields>(NO_OPTIONS);

export function setOption<Name extends keyof OptionFields>(name: Name, value: OptionFields[Name]): void {
  options.value = { ...options.value, [name]: value };
}

/** The options that are others now than they were. */
export function changedSince(before: OptionFields): Partial<OptionFields> {
  const names = Object.keys(before) as (keyof OptionFields)[];
  return Object.fromEntries(names.filter((name) => options.value[name] !== before[name]).map((name) => [name, options.value[name]]));
}

/** The contestants of the options, with one more or one less of them. */
export function withContestant(contestants: string, name: string, isAsked: boolean): string {
  const others = contestants.split(",").filter((one) => one && one !== name);
  return (isAsked ? [...others, name] : others).join(",");
}

const LONG_DTYPES: Record<string, string> = {
  f64: "float64", f32: "float32", f16: "float16", bf16: "bfloat16", i64: "int64", i32: "int32", i16: "int16", i8: "int8", u8: "uint8",
};

const yesOrNo = (value: unknown): string => (value === true ? "yes" : value === false ? "no" : "");

/** The fields that ask for what a stored report was asked for: so that exploring again changes nothing else. */
export function fieldsFrom(stored: Record<string, unknown>): OptionFields {
  const text = (name: string): string => (stored[name] == null ? "" : String(stored[name]));
  const inputs = (stored.inputs ?? []) as InputSpec[];
  const timing = stored.timing as { enabled?: boolean } | undefined;
  return {
    ...NO_OPTIONS,
    entry: text("entry"),
    inputs: inputs.map(({ shape, dtype }) => `${shape.length === 0 ? "()" : shape.join("x")} ${dtype}`).join(", "),
    device: text("device"),
    // Defaults of the server stand in every stored report; they are shown as "default" all the same.
    target: stored.target === "sm_90" ? "" : text("target"),
    mode: stored.mode === "default" ? "" : text("mode"),
    cuda_graphs: stored.cuda_graphs === "auto" ? "" : text("cuda_graphs"),
    dynamic: yesOrNo(stored.dynamic),
    training: yesOrNo(stored.training),
    trace: stored.trace === true ? "yes" : "",
    peer: stored.peer === true,
    peer_mode: text("peer_mode"),
    contestants: ((stored.contestants ?? []) as string[]).join(","),
    timing: timing?.enabled !== false,
    seed: stored.seed === 0 ? "" : text("seed"),
    sweep: sweepText(stored.sweep as SweepRequest | null | undefined),
  };
}

/** `1024x1024 f32, 128 bf16, () i64` → the inputs of a lone function, in order. */
export function parseInputs(text: string): InputSpec[] {
  return text
    .split(/[;,]/)
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => {
      const match = /^(\(\)|\d+(?:\s*[x×*]\s*\d+)*)(?:\s+(\w+))?$/i.exec(part);
      if (!match) throw new Error(`“${part}” is not an input: write sizes and a dtype, such as 1024x1024 f32`);
      const [, sizes = "", dtype = "float32"] = match;
      const shape = sizes === "()" ? [] : sizes.split(/\s*[x×*]\s*/i).map(Number);
      return { shape, dtype: LONG_DTYPES[dtype] ?? dtype };
    });
}

export function parseSeed(text: string): number {
  if (!/^-?\d+$/.test(text.trim())) throw new Error(`“${text.trim()}” is not a seed: write a whole number, such as 7`);
  return Number(text);
}

export function requestFrom(source: string, fields: OptionFields = options.value): ExplorationRequest {
  const request: ExplorationRequest = { source };
  if (fields.entry.trim()) request.entry = fields.entry.trim();
  if (fields.inputs.trim()) request.inputs = parseInputs(fields.inputs);
  if (fields.device) request.device = fields.device;
  if (fields.target) request.target = fields.target;
  if (fields.mode) request.mode = fields.mode;
  if (fields.cuda_graphs) request.cuda_graphs = fields.cuda_graphs;
  if (fields.dynamic) request.dynamic = fields.dynamic === "yes";
  if (fields.training) request.training = fields.training === "yes";
  if (fields.trace) request.trace = true;
  if (fields.peer) request.peer = true;
  if (fields.peer && fields.peer_mode) request.peer_mode = fields.peer_mode;
  if (fields.contestants) request.contestants = fields.contestants.split(",");
  if (!fields.timing) request.timing = { enabled: false };
  if (fields.seed.trim()) request.seed = parseSeed(fields.seed);
  const sweep = parseSweep(fields.sweep);
  if (sweep) request.sweep = sweep;
  if (fields.refresh) request.cache = "refresh";
  return request;
}

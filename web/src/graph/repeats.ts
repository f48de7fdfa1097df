/**
 * Equal layers: stretches of kernels that run several times one after another. Two kernels are equal where one says that
 * its code is that of the other, or where both run the same operations over as many bytes: backward, the same code may
 * name its arguments in another order. Pure.
 */
import type { Graph } from "../report";
import { coveringOf } from "./covering";

export interface Repeat {
  /** Place of the first kernel of the first layer. */
  start: number;
  /** Kernels in one layer. */
  period: number;
  /** How many equal layers there are. */
  count: number;
  /** What the layers are called: the modules that they run in, or empty where there are none. */
  names: string[];
}

/** A layer of more kernels than this is not looked for: the search is quadratic. */
const LONGEST_PERIOD = 240;
const SHORTEST_PERIOD = 3;

function classesOf(graph: Graph): number[] {
  const classes = new Map<string, number>();
  const targets = new Map(graph.aten.map((node) => [node.name, node.target]));
  const places = new Map(graph.kernels.map((kernel, place) => [kernel.name, place]));
  const { operationsOf } = coveringOf(graph);
  return graph.kernels.map((kernel, place) => {
    const known = places.get(kernel.same_as ?? "") ?? place;
    const { name, bytes, flops } = graph.kernels[known] ?? kernel;
    const operations = operationsOf[known]?.map((operation) => targets.get(operation)).sort() ?? [];
    // The number at a name's end counts the layers.
    const key = [name.replace(/_\d+$/, ""), bytes, flops, ...operations].join(" ");
    const number = classes.get(key) ?? classes.size;
    classes.set(key, number);
    return number;
  });
}

/** The longest stretches first, then what is left beside them. */
export function repeatsOf(graph: Graph): Repeat[] {
  const classes = classesOf(graph);
  const found: Repeat[] = [];
  const open: [number, number][] = [[0, classes.length]];
  for (let next = open.pop(); next; next = open.pop()) {
    const best = bestStretch(classes, next[0], next[1]);
    if (!best) continue;
    const layers = layersOf(graph);
    const start = best.start + bestShift(layers, best);
    const names = namesOf(layers, { ...best, start });
    // A few equal kernels one after another are layers only where modules say so.
    if (names.length > 0 || best.period >= SHORTEST_PERIOD) found.push({ start, period: best.period, count: best.count, names });
    open.push([next[0], start], [start + best.period * best.count, next[1]]);
  }
  return found.sort((one, other) => one.start - other.start);
}

interface Stretch {
  start: number;
  period: number;
  count: number;
  /** By how much it could begin later. */
  slack: number;
}

function bestStretch(classes: readonly number[], from: number, to: number): Stretch | null {
  let best: Stretch | null = null;
  for (let period = 1; period <= Math.min(LONGEST_PERIOD, (to - from) / 2); period += 1) {
    let run = 0;
    for (let place = from; place + period <= to; place += 1) {
      if (place + period < to && classes[place] === classes[place + period]) {
        run += 1;
        continue;
      }
      const count = Math.floor(run / period) + 1;
      const isWorth = count >= 3 || (count === 2 && period >= SHORTEST_PERIOD);
      if (isWorth && (count - 1) * period > (best ? (best.count - 1) * best.period : 0)) {
        best = { start: place - run, period, count, slack: run % period };
      }
      run = 0;
    }
  }
  return best;
}

const layersKnown = new WeakMap<Graph, string[]>();

/** For each kernel the module, down to its first number, in which most of its operations ran. */
function layersOf(graph: Graph): string[] {
  const before = layersKnown.get(graph);
  if (before) return before;
  const moduleOf = new Map(graph.aten.map((node) => [node.name, layerIn(node.module)]));
  const layers = coveringOf(graph).operationsOf.map((operations) => mostCommon(operations.map((name) => moduleOf.get(name) ?? "")));
  layersKnown.set(graph, layers);
  return layers;
}

/** `model.layers.3.attention.out` is a part of `model.layers.3`. */
export function layerIn(module: string | null): string {
  return /^(.*?\.?\d+)(\.|$)/.exec(module ?? "")?.[1] ?? "";
}

/** The part of a layer that an operation ran in: `model.layers.3.attention` of `model.layers.3.attention.out`. */
export function moduleIn(module: string | null): string {
  const layer = layerIn(module);
  const [next = ""] = (module ?? "").slice(layer ? layer.length + 1 : 0).split(".");
  return next === "" ? "" : layer ? `${layer}.${next}` : next;
}

export function mostCommon(words: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1])[0]?.[0] ?? "";
}

/** The same stretch may begin at any of several kernels: best where most of a layer's kernels are of one module. */
function bestShift(layers: readonly string[], stretch: Stretch): number {
  let best = { shift: 0, score: 0 };
  for (let shift = 0; shift <= stretch.slack; shift += 1) {
    const first = layers.slice(stretch.start + shift, stretch.start + shift + stretch.period);
    const score = first.filter((layer) => layer === mostCommon(first)).length;
    if (score > best.score) best = { shift, score };
  }
  return best.shift;
}

function namesOf(layers: readonly string[], { start, period, count }: Omit<Stretch, "slack">): string[] {
  const names = Array.from({ length: count }, (_unused, layer) => mostCommon(layers.slice(start + layer * period, start + (layer + 1) * period)));
  return new Set(names).size === count && names.every((name) => name !== "") ? names : [];
}

/**
 * What each node of a graph is drawn as: itself, a part of a kernel or of a stretch that is drawn as one node, the same
 * place in the equal layer that is drawn, or nothing of its own. Pure.
 *
 * A small graph is drawn operation by operation. A larger one folds inputs with one reader into it, and equal layers into
 * one of them. Above `COLLAPSE_ABOVE` nodes each kernel is one node until it is opened; where there are no kernels yet, or
 * none are meant, stretches of one module are.
 */
import type { Links } from "../links";
import { refsOf } from "../links";
import type { FxNode, Graph } from "../report";
import { coveringOf, isInput, viewsOf } from "./covering";
import { layerIn, type Repeat, repeatsOf } from "./repeats";

export const COLLAPSE_ABOVE = 150;
const FOLD_INPUTS_ABOVE = 40;
const FOLD_LAYERS_ABOVE = 60;
/** Stretches that have no module to tell them apart are cut after so many nodes. */
const LONGEST_STRETCH = 60;

export interface Look {
  level: "aten" | "fx";
  showViews: boolean;
  /** What the reader opened: `k3` a kernel, `s2` a stretch, `r12:4` layer 4 of the equal ones from kernel 12 on, `r12:all`. */
  opened: ReadonlySet<string>;
}

/** Equal layers of which one is drawn. */
export interface Layers extends Repeat {
  id: string;
  shown: number;
}

export interface Plan {
  graph: Graph;
  look: Look;
  nodes: readonly FxNode[];
  collapsed: boolean;
  /** True where inputs are told of in their reader. */
  foldsInputs: boolean;
  layers: Layers[];
  /** Kernels of a node, by place; empty where it has none. */
  kernelsOf(name: string): readonly number[];
  isView(name: string): boolean;
  /** The id of what stands for a node; null for one that is looked through. */
  idOf(name: string): string | null;
  /** Which equal layer a node is in, as `r12:4`; null for one that is in none that is folded. */
  layerOf(name: string): string | null;
  isHidden(name: string): boolean;
}

interface Place {
  layers: Layers;
  layer: number;
  offset: number;
}

const repeatsKnown = new WeakMap<Graph["kernels"], Repeat[]>();

function repeatsFor(graph: Graph): Repeat[] {
  let repeats = repeatsKnown.get(graph.kernels);
  if (!repeats) repeatsKnown.set(graph.kernels, (repeats = repeatsOf(graph)));
  return repeats;
}

export function layersShown(graph: Graph, opened: ReadonlySet<string>): Layers[] {
  return repeatsFor(graph).flatMap((repeat) => {
    const id = `r${repeat.start}`;
    if (opened.has(`${id}:all`)) return [];
    const asked = [...opened].find((token) => token.startsWith(`${id}:`));
    const shown = Math.min(repeat.count - 1, Number(asked?.slice(id.length + 1) ?? 0) || 0);
    return [{ ...repeat, id, shown }];
  });
}

export function planOf(graph: Graph, look: Look, links: Links): Plan {
  const isAten = look.level === "aten";
  const nodes = isAten ? graph.aten : graph.fx;
  const covering = coveringOf(graph);
  const views = look.showViews ? new Set<string>() : viewsOf(graph, nodes);
  const none: number[] = [];
  const kernelsOf = (name: string): readonly number[] => {
    if (isAten) return covering.kernelsOf.get(name) ?? none;
    // A Dynamo node is tied to kernels by its line alone: only an unambiguous tie puts it into one.
    const places = links.numbersOf(refsOf(graph).fx(name), "kernel", graph.name);
    return places.length === 1 ? places : none;
  };
  const own = nodes.filter((node) => !views.has(node.name));
  const isLarge = own.length > FOLD_LAYERS_ABOVE;
  const layers = isAten && isLarge ? layersShown(graph, look.opened) : [];
  const places = placesIn(layers);
  const placeOf = (name: string): Place | undefined => places.get(kernelsOf(name)[0] ?? -1);
  const isHidden = (name: string): boolean => {
    const place = placeOf(name);
    return place !== undefined && place.layer !== place.layers.shown;
  };
  const foldsInputs = own.length > FOLD_INPUTS_ABOVE;
  const collapsed = own.filter((node) => !(foldsInputs && isInput(node))).length > COLLAPSE_ABOVE;
  const drawn = own.filter((node) => !isHidden(node.name));
  const stretches = collapsed ? stretchesOf(drawn, (node) => isAten && kernelsOf(node.name).length > 0) : new Map<string, string>();
  const findId = (name: string): string | null => {
    if (views.has(name)) return null;
    const place = placeOf(name);
    const home = place ? place.layers.start + place.layers.shown * place.layers.period + place.offset : kernelsOf(name)[0];
    if (collapsed && isAten && home !== undefined && !look.opened.has(`k${home}`)) return `k${home}`;
    if (place && place.layer !== place.layers.shown && home !== undefined) return counterpart(name, kernelsOf(name)[0] ?? 0, home, covering.operationsOf);
    const stretch = stretches.get(name);
    return stretch !== undefined && !look.opened.has(stretch) ? stretch : name;
  };
  const ids = new Map<string, string | null>();
  const idOf = (name: string): string | null => {
    let id = ids.get(name);
    if (id === undefined) ids.set(name, (id = findId(name)));
    return id;
  };
  return {
    graph, look, nodes, collapsed, foldsInputs, layers, kernelsOf, idOf, isHidden,
    isView: (name) => views.has(name),
    layerOf: (name) => {
      const place = placeOf(name);
      return place ? `${place.layers.id}:${place.layer}` : null;
    },
  };
}

function placesIn(all: readonly Layers[]): Map<number, Place> {
  const places = new Map<number, Place>();
  for (const layers of all) {
    for (let step = 0; step < layers.period * layers.count; step += 1) {
      places.set(layers.start + step, { layers, layer: Math.floor(step / layers.period), offset: step % layers.period });
    }
  }
  return places;
}

/** Equal kernels have equal operations in one order; where they differ by a view, the first one stands for the rest. */
function counterpart(name: string, from: number, to: number, operationsOf: readonly string[][]): string {
  const own = operationsOf[from] ?? [];
  const other = operationsOf[to] ?? [];
  const place = own.length === other.length ? own.indexOf(name) : 0;
  return other[place] ?? name;
}

/** Nodes one after another that ran in one layer, or in none: as one node each, no edge can go back. */
function stretchesOf(nodes: readonly FxNode[], isElsewhere: (node: FxNode) => boolean): Map<string, string> {
  const found = new Map<string, string>();
  let members: FxNode[] = [];
  let number = 0;
  const close = (): void => {
    if (members.length > 2) for (const node of members) found.set(node.name, `s${number}`);
    if (members.length > 0) number += 1;
    members = [];
  };
  for (const node of nodes) {
    if (isInput(node) || node.op === "output" || isElsewhere(node)) {
      if (isElsewhere(node)) close();
      continue;
    }
    const [first] = members;
    const key = (one: FxNode): string => layerIn(one.module) || (one.module ?? "");
    const isFull = members.length >= (first && key(first) ? 4 * LONGEST_STRETCH : LONGEST_STRETCH);
    if (first && (key(first) !== key(node) || isFull)) close();
    members.push(node);
  }
  close();
  return found;
}

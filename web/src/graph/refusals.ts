/** The refused pairs that cost most, over all graphs of a report. Pure. */
import { loopsBehind, type Ref, refsOf } from "../links";
import type { Decision, Graph } from "../report";
import { stakeOf } from "../stake";

export const COSTLIEST = 10;

export interface Refusal {
  ref: Ref;
  graph: string;
  decision: Decision;
  stake: number;
  /** Where the two sides meet, as loop nodes: what the question why is about. */
  a: string;
  b: string;
  /** The same as nodes of `aten`. */
  from: string;
  to: string;
  /** In how many equal layers the same is refused; 1 where there is no other. */
  count: number;
}

interface Found extends Refusal {
  key: string;
}

/** Refusals that lasted, with most bytes at stake first; the same one in equal layers is told once. */
export function costliestRefusals(graphs: readonly Graph[], atMost: number = COSTLIEST): Refusal[] {
  const all = graphs.flatMap((graph) => lastingRefusals(graph));
  all.sort((one, other) => other.stake - one.stake);
  const told = new Map<string, Found>();
  for (const refusal of all) {
    const same = told.get(refusal.key);
    if (same) same.count += 1;
    else if (told.size < atMost) told.set(refusal.key, refusal);
  }
  return [...told.values()];
}

const known = new WeakMap<Graph["decisions"], Found[]>();

export function lastingRefusals(graph: Graph): Found[] {
  let found = known.get(graph.decisions);
  if (!found || graph.kernels.length === 0) {
    found = findLasting(graph);
    if (graph.kernels.length > 0) known.set(graph.decisions, found);
  }
  return found.map((one) => ({ ...one }));
}

function findLasting(graph: Graph): Found[] {
  const kernelOf = new Map<string, Set<number>>();
  graph.kernels.forEach((kernel, place) => kernel.nodes.forEach((loop) => kernelOf.set(loop, (kernelOf.get(loop) ?? new Set()).add(place))));
  const originsOfLoop = new Map(graph.loops.map((loop) => [loop.name, loop.origins]));
  const order = new Map(graph.aten.map((node, place) => [node.name, place]));
  const classOf = graph.kernels.map((kernel) => (kernel.kind === "extern" ? kernel.name : (kernel.same_as ?? kernel.name)));
  const pairs = new Set<string>();
  const found: Found[] = [];
  graph.decisions.forEach((decision, index) => {
    const stake = stakeOf(decision);
    if (decision.verdict !== "refused" || stake <= 0) return;
    const [as, bs] = [loopsBehind(decision.a, graph), loopsBehind(decision.b, graph)];
    const [a, b] = [as.at(-1), bs[0]];
    const kernelsOf = (loops: string[]): number[] => loops.flatMap((loop) => [...(kernelOf.get(loop) ?? [])]);
    const ofB = new Set(kernelsOf(bs));
    if (!a || !b || kernelsOf(as).some((place) => ofB.has(place))) return;
    const from = lastIn(originsOfLoop.get(a) ?? [], order);
    const to = (originsOfLoop.get(b) ?? []).find((origin) => order.has(origin));
    // Asked in one order and in the other, it is one pair.
    const pairOf = [a, b].sort().join(" ");
    if (!from || !to || pairs.has(pairOf)) return;
    pairs.add(pairOf);
    const classes = [a, b].map((loop) => [...(kernelOf.get(loop) ?? [])].map((place) => classOf[place]).join("+"));
    // Numbers in names count the layers.
    const key = [graph.name, decision.reason, stake, ...classes, ...[a, b].map((name) => name.replace(/_?\d+/g, ""))].join(" ");
    found.push({ ref: refsOf(graph).decision(index), graph: graph.name, decision, stake, a, b, from, to, count: 1, key });
  });
  return found;
}

function lastIn(names: readonly string[], order: ReadonlyMap<string, number>): string | undefined {
  return names.filter((name) => order.has(name)).sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0)).at(-1);
}

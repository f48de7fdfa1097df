/** The kernels that stayed apart, those with most bytes at stake over all graphs of a report. Pure. */
import { type Ref, refsOf } from "../links";
import type { Decision, Graph } from "../report";

export const COSTLIEST = 10;

/** Two nodes that were refused, and where their decision stands. */
export interface RefusedPair {
  ref: Ref;
  graph: string;
  decision: Decision;
  a: string;
  b: string;
}

export interface Refusal extends RefusedPair {
  stake: number;
  /** Places of the kernels of `a` and of `b`. */
  kernels: [number, number];
  /** Its graph's name, for each graph counts its kernels from K1; empty where there is one graph. */
  where: string;
  /** The two sides as nodes of `aten`. */
  from: string;
  to: string;
  /** Pairs of other nodes of the two kernels. */
  others: RefusedPair[];
  /** In how many equal layers the same is refused; 1 where there is no other. */
  count: number;
}

/** Most bytes at stake first; the same refusal in equal layers is told once. */
export function costliestRefusals(graphs: readonly Graph[], atMost: number = COSTLIEST): Refusal[] {
  const all = graphs.flatMap((graph) => refusalsOf(graph, graphs.length > 1 ? graph.name : ""));
  all.sort((one, other) => other.stake - one.stake);
  const told = new Map<string, Refusal>();
  for (const { key, ...refusal } of all) {
    const same = told.get(key);
    if (same) same.count += 1;
    else if (told.size < atMost) told.set(key, refusal);
  }
  return [...told.values()];
}

function refusalsOf(graph: Graph, where: string): (Refusal & { key: string })[] {
  const originsOfLoop = new Map(graph.loops.map((loop) => [loop.name, loop.origins]));
  const order = new Map(graph.aten.map((node, place) => [node.name, place]));
  const classOf = graph.kernels.map((kernel) => (kernel.kind === "extern" ? kernel.name : (kernel.same_as ?? kernel.name)));
  const pairOf = (index: number): RefusedPair => {
    const decision = graph.decisions[index]!;
    return { ref: refsOf(graph).decision(index), graph: graph.name, decision, a: decision.a, b: decision.b };
  };
  return graph.refusals.flatMap(({ kernels: [one, two], decisions, bytes }) => {
    const [first, ...others] = decisions.map(pairOf);
    if (!first) return [];
    const from = lastIn(originsOfLoop.get(first.a) ?? [], order);
    const endIn = (origins: readonly string[]): string | undefined => origins.find((origin) => order.has(origin) && origin !== from);
    // Of a library call and the sum of its bias, which are one node of `aten`, the line ends at what reads the sum.
    const readers = (): Graph["loops"] => graph.loops.filter(({ reads }) => reads.some(({ buffer }) => buffer === first.b));
    const to = endIn(originsOfLoop.get(first.b) ?? []) ?? endIn(readers().flatMap(({ origins }) => origins));
    if (!from || !to) return [];
    const kernels: [number, number] = graph.kernels[one]?.nodes.includes(first.a) ? [one, two] : [two, one];
    const key = [graph.name, first.decision.reason, bytes, classOf[one], classOf[two]].join(" ");
    return [{ ...first, stake: bytes, kernels, where, from, to, others, count: 1, key }];
  });
}

function lastIn(names: readonly string[], order: ReadonlyMap<string, number>): string | undefined {
  return names.filter((name) => order.has(name)).sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0)).at(-1);
}

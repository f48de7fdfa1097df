/** Stepping through the scheduler's rounds: as `compiler/rounds.py` does it. */
import type { Graph } from "./report";

/** The nodes of every unit after a round; before the first one, each node is a unit of its own. */
export function unitsAfter(graph: Graph, round: number): string[][] {
  const alive = graph.loops.filter((loop) => !loop.dead);
  const units = new Map<number, string[]>(alive.map((loop, number) => [number, [loop.name]]));
  for (const step of graph.rounds) {
    if (step.number > round) break;
    for (const [a, b, made] of step.fused) {
      units.set(made, [...(units.get(a) ?? []), ...(units.get(b) ?? [])]);
      units.delete(a);
      units.delete(b);
    }
  }
  return [...units.values()];
}

export function lastRound(graph: Graph): number {
  return graph.rounds.at(-1)?.number ?? 0;
}

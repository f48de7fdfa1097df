/** What a decision is about, in bytes. */
import { loopsBehind } from "./links";
import type { Buffer, Decision, Graph } from "./report";

/** The tensor that both sides touch, where the decision names one that is in the plan of buffers. */
export function sharedBuffer(decision: Decision, graph: Graph): Buffer | null {
  return graph.buffers.find((buffer) => buffer.name === decision.shared) ?? null;
}

/**
 * Places of the kernels that hold both sides in the end: a pair that is refused in one round may come together in a
 * later one, once what stood between them has joined.
 */
export function togetherIn(decision: Decision, graph: Graph): number[] {
  const sides = [decision.a, decision.b].map((side) => loopsBehind(side, graph));
  return graph.kernels.flatMap((kernel, place) =>
    sides.every((loops) => loops.some((loop) => kernel.nodes.includes(loop))) ? [place] : [],
  );
}

/** Bytes that were saved, or that stay at stake because the pair was refused: used to order, never shown as a saving. */
export function stakeOf(decision: Decision): number {
  return decision.score?.bytes_saved ?? decision.shared_bytes ?? 0;
}

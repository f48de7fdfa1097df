/** What a decision is about, in bytes. */
import type { Buffer, Decision, Graph } from "./report";

/** The tensor that both sides touch, where the decision names one that is in the plan of buffers. */
export function sharedBuffer(decision: Decision, graph: Graph): Buffer | null {
  const { shared } = decision.numbers;
  return graph.buffers.find((buffer) => buffer.name === shared) ?? null;
}

/** Bytes that were saved, or that stay at stake because the pair was refused: used to order, never shown as a saving. */
export function stakeOf(decision: Decision, graph: Graph): number {
  return decision.score?.bytes_saved ?? sharedBuffer(decision, graph)?.bytes ?? 0;
}

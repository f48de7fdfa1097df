/** What is known of two nodes: the service's answers, and what the report on screen adds to them. */
import type { Answer } from "../../api";
import { loopsBehind } from "../../links";
import type { Access, Decision, Graph, Side } from "../../report";

/** torch numbers the nodes of one operator. */
const operatorOf = (name: string): string => name.replace(/_\d+$/, "");

/** Whether a question may use this name, as the service has it: a node of any kind, a kernel, or an operator. */
export function isKnown(name: string, graph: Graph): boolean {
  const has = (some: readonly { name: string }[]): boolean => some.some((one) => one.name === name);
  const [, place] = /^K([1-9]\d*)$/.exec(name) ?? [];
  if (place !== undefined && Number(place) <= graph.kernels.length) return true;
  return has(graph.loops) || has(graph.aten) || has(graph.fx) || has(graph.kernels) || graph.aten.some((node) => operatorOf(node.name) === name);
}

/** Those of the graph that was asked about come first; names may be in other graphs too. */
export function ofGraph(answers: readonly Answer[], graph: string): Answer[] {
  const here = answers.filter((answer) => answer.graph === graph);
  return here.length > 0 ? here : [...answers];
}

const isOf = (decision: Decision, a: string, b: string): boolean =>
  (decision.a === a && decision.b === b) || (decision.a === b && decision.b === a);

/** Every time that the pair was asked about, in the order of rounds: also those that a later fusion made void. */
export function historyOf(answer: Answer, graph: Graph | null): Decision[] {
  const known = new Map<string, Decision>();
  const asked = (graph?.decisions ?? []).filter((decision) => isOf(decision, answer.a, answer.b));
  for (const decision of [...answer.decisions, ...asked]) {
    known.set(JSON.stringify([decision.round, decision.a, decision.b, decision.reason]), decision);
  }
  return [...known.values()].sort((one, other) => one.round - other.round);
}

/** The decision that the answer rests on: of those with its reason the last, or else the last one. */
export function decisionOf(answer: Answer, history: readonly Decision[]): Decision | null {
  return history.filter((decision) => decision.reason === answer.reason).at(-1) ?? history.at(-1) ?? null;
}

/** How the two were looked at, where that was by what they had been fused with. */
export function metAs(decision: Decision, { a, b }: Answer): string | null {
  if (isOf(decision, a, b)) return null;
  return `In round ${decision.round} they were looked at as \`${decision.a}\` and \`${decision.b}\`, with what each had been fused with.`;
}

/** Bytes of the shared buffer that one side touches; null where the side does not name it. */
export function bytesOf(name: string, does: Side["does"], shared: string | null, graph: Graph): number | null {
  if (shared === null) return null;
  const behind = new Set(loopsBehind(name, graph));
  const loops = graph.loops.filter((loop) => behind.has(loop.name));
  // A group touches it by another of its nodes than the one that the decision names.
  const places = graph.kernels.filter(({ nodes }) => nodes.some((node) => behind.has(node)));
  const beside = graph.loops.filter((loop) => places.some(({ nodes }) => nodes.includes(loop.name)));
  const sum = (accesses: Access[]): number | null => {
    const found = accesses.filter((access) => access.buffer === shared);
    return found.length > 0 ? Math.max(...found.map((access) => access.bytes)) : null;
  };
  const told = [loops, beside].flatMap((some) => {
    const [reads, writes] = [some.flatMap((loop) => loop.reads), some.flatMap((loop) => loop.writes)].map(sum);
    return does === "writes" ? [writes, reads] : does === "reads" ? [reads, writes] : [writes, reads];
  });
  return told.find((bytes) => bytes != null) ?? null;
}

/** The dtype of what the side computes. */
export function dtypeOf(name: string, graph: Graph): string | null {
  const [loop] = loopsBehind(name, graph).slice(-1);
  return graph.loops.find((one) => one.name === loop)?.dtype ?? null;
}

/** Times of the kernels that the two ended in: a sum where all are known. */
export function kernelTimes(answer: Answer, graph: Graph, what: "predicted_us" | "measured_us"): number | null {
  const kernels = graph.kernels.filter((kernel) => [answer.a, answer.b].some((node) => kernel.nodes.includes(node)));
  const times = kernels.map((kernel) => kernel[what]);
  return times.length > 0 && times.every((time) => time != null) ? times.reduce<number>((sum, time) => sum + (time ?? 0), 0) : null;
}

/** Reasons about what the two are, not about what pays: nothing can be forced against them. */
const ABOUT_WHAT_IS_CORRECT = new Set(["dependency", "index", "shape"]);
const NOTHING_TO_FUSE = new Set(["policy.no_loop", "policy.removed", "policy.other_graph"]);

/** Why forcing these two is of no use, in a sentence; null where it may be tried. */
export function whyNotForce({ a, b, reason }: Pick<Answer, "a" | "b" | "reason">, graph: Graph | null): string | null {
  const input = (graph?.aten ?? []).find((node) => [a, b].includes(node.name) && ["placeholder", "get_attr"].includes(node.op));
  if (input) return `${input.name} is an input of the graph: no kernel computes it, so there is nothing to fuse.`;
  if (a === b) return "Both names mean the same node.";
  if (NOTHING_TO_FUSE.has(reason)) return "There are no two kernels that could become one.";
  return null;
}

export function isAboutCorrectness(reason: string): boolean {
  return ABOUT_WHAT_IS_CORRECT.has(reason.split(".")[0] ?? "");
}

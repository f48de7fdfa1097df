/** Rows of the table of decisions. Pure. */
import type { Decision, Graph } from "../../report";
import { stakeOf, togetherIn } from "../../stake";

export interface Row {
  decision: Decision;
  /** Its place in the report. */
  index: number;
  /** Rounds in which the same pair got the same answer: one row is enough for all. */
  rounds: number[];
  stake: number;
  kernels: number[];
  /** Of a refusal: kernels that hold both in the end. */
  together: number[];
}

export type Verdict = "all" | Decision["verdict"];

export interface Filters {
  verdict: Verdict;
  family: string;
  words: string;
  round: number | null;
}

/** The part of a reason's id before the dot: index, shape, profit, ... */
export function familyOf(decision: Decision): string {
  return decision.reason.split(".")[0] ?? "";
}

/** Places of the kernels that the two ended in: one, or two in the order of their launches. */
function kernelsOf({ a, b }: Decision, graph: Graph): number[] {
  const places = [a, b].map((node) => graph.kernels.findIndex(({ nodes }) => nodes.includes(node)));
  return [...new Set(places)].filter((place) => place >= 0).sort((one, other) => one - other);
}

function keyOf({ a, b, verdict, reason }: Decision): string {
  return JSON.stringify([a, b, verdict, reason]);
}

/** How many rows the table of decisions has. */
export function countRows(graph: Graph): number {
  return new Set(graph.decisions.map(keyOf)).size;
}

/** Refusals that lasted come first, and of them those with most at stake; equal stakes keep the scheduler's order. */
export function rowsOf(graph: Graph): Row[] {
  const found = new Map<string, Row>();
  graph.decisions.forEach((decision, index) => {
    const key = keyOf(decision);
    const known = found.get(key);
    if (known) known.rounds.push(decision.round);
    else found.set(key, { decision, index, rounds: [decision.round], stake: stakeOf(decision), kernels: kernelsOf(decision, graph), together: decision.verdict === "refused" ? togetherIn(decision, graph) : [] });
  });
  const rank = ({ decision, together }: Row): number => (decision.verdict === "fused" ? 2 : together.length > 0 ? 1 : 0);
  return [...found.values()].sort((one, other) => rank(one) - rank(other) || other.stake - one.stake || one.index - other.index);
}

export function filtered(rows: readonly Row[], { verdict, family, words, round }: Filters): Row[] {
  const wanted = words.toLowerCase().split(/\s+/);
  return rows.filter(({ decision, rounds }) => {
    const text = `${decision.a} ${decision.b} ${decision.kind} ${decision.reason} ${decision.message}`.toLowerCase();
    return (
      (verdict === "all" || decision.verdict === verdict) &&
      (family === "" || familyOf(decision) === family) &&
      (round === null || rounds.includes(round)) &&
      wanted.every((word) => text.includes(word))
    );
  });
}

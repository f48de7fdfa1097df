/**
 * Our kernels beside another compiler's, aligned by the operations that both compute: the same, split, merged, cut
 * otherwise, or computed by one of the two alone. Where they differ, the decision of ours that explains it. Pure.
 */
import * as format from "../format";
import { graphNameOf, type Links, loopsBehind, nameIn, type Ref, ref, refsOf } from "../links";
import type { Decision, Graph, Kernel, Report } from "../report";
import { coveringOf, viewsOf } from "./covering";
import { lastingRefusals } from "./refusals";

export interface Difference {
  kind: "merged" | "split" | "otherwise" | "theirs alone" | "ours alone";
  graph: string;
  ours: number[];
  theirs: number[];
  /** Operations that it is about, in the graph's order. */
  nodes: string[];
  sentence: string;
  /** Why ours decided otherwise; empty where no decision tells. */
  because: string;
  decision: Ref | null;
  pair: { a: string; b: string } | null;
  /** How often the same is found: equal layers differ equally. */
  count: number;
}

export interface Alignment {
  same: number;
  differences: Difference[];
  /** Operations of each of the peer's kernels, in the graph that it belongs to. */
  kernels: { place: number; graph: string | null; nodes: string[] }[];
}

interface Piece {
  ours: Set<number>;
  theirs: Set<number>;
  nodes: string[];
}

export function alignmentOf(report: Report, links: Links): Alignment {
  const peer = report.peer;
  if (!peer) return { same: 0, differences: [], kernels: [] };
  const kernels = peer.kernels.map((_kernel, place) => {
    const covered = [...links.partnersOfKind(ref.peer(place), "aten")];
    return { place, graph: covered[0] ? graphNameOf(covered[0]) : null, nodes: covered.map(nameIn) };
  });
  let same = 0;
  const found: Difference[] = [];
  for (const graph of report.graphs) {
    if (graph.kernels.length === 0) continue;
    for (const piece of piecesOf(graph, kernels)) {
      if (piece.ours.size === 1 && piece.theirs.size === 1) same += 1;
      else found.push(differenceOf(graph, peer.name, peer.kernels, piece));
    }
  }
  return { same, differences: onceEach(found), kernels };
}

/** Kernels of both that hang together by an operation. An operation that several kernels compute belongs to the first. */
function piecesOf(graph: Graph, kernels: Alignment["kernels"]): Piece[] {
  const views = viewsOf(graph, graph.aten);
  const covering = coveringOf(graph);
  const theirsOf = new Map<string, number>();
  for (const kernel of kernels) {
    if (kernel.graph !== graph.name) continue;
    for (const node of kernel.nodes) if (!theirsOf.has(node)) theirsOf.set(node, kernel.place);
  }
  const pieceOf = new Map<string, Piece>();
  const all = new Set<Piece>();
  for (const { name } of graph.aten) {
    const our = covering.kernelsOf.get(name)?.[0];
    const their = theirsOf.get(name);
    if (views.has(name) || (our === undefined && their === undefined)) continue;
    const keys = [our !== undefined && `k${our}`, their !== undefined && `p${their}`].filter((key) => key !== false);
    const [first, second] = [...new Set(keys.flatMap((key) => pieceOf.get(key) ?? []))];
    const piece = first ?? { ours: new Set<number>(), theirs: new Set<number>(), nodes: [] };
    all.add(piece);
    if (second) {
      all.delete(second);
      second.ours.forEach((place) => piece.ours.add(place));
      second.theirs.forEach((place) => piece.theirs.add(place));
      piece.nodes.push(...second.nodes);
    }
    if (our !== undefined) piece.ours.add(our);
    if (their !== undefined) piece.theirs.add(their);
    piece.nodes.push(name);
    for (const place of piece.ours) pieceOf.set(`k${place}`, piece);
    for (const place of piece.theirs) pieceOf.set(`p${place}`, piece);
  }
  return [...all];
}

function differenceOf(graph: Graph, peer: string, kernels: readonly Kernel[], piece: Piece): Difference {
  const ours = [...piece.ours].sort((one, other) => one - other);
  const theirs = [...piece.theirs].sort((one, other) => one - other);
  const kind = ours.length === 0 ? "theirs alone" : theirs.length === 0 ? "ours alone" : theirs.length === 1 ? "merged" : ours.length === 1 ? "split" : "otherwise";
  const named = list(ours.map((place) => `K${place + 1}`));
  const sentence = {
    merged: `${peer} computes ${named} in one kernel.`,
    split: `${peer} computes ${named} in ${format.count(theirs.length, "kernel")}.`,
    otherwise: `${peer} computes ${named} in ${format.count(theirs.length, "kernel")}, cut at other places.`,
    "theirs alone": `${peer} launches ${kernels[theirs[0] ?? 0]?.name ?? "a kernel"} for ${list(piece.nodes.slice(0, 3))}. Ours launches none for it.`,
    "ours alone": `${named} computes ${list(piece.nodes.slice(0, 3))}. ${peer} launches nothing for it alone.`,
  }[kind];
  const reason = ours.length > 1 ? refusalAmong(graph, ours) : kind === "split" ? fusionWithin(graph, ours[0] ?? 0) : null;
  return { kind, graph: graph.name, ours, theirs, nodes: piece.nodes, sentence, count: 1, because: "", decision: null, pair: null, ...reason };
}

function list(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

type Reason = Pick<Difference, "because" | "decision" | "pair">;

/** Of our refusals between the kernels that the other compiler computes as one, the one with most bytes at stake. */
function refusalAmong(graph: Graph, ours: readonly number[]): Reason | null {
  const loops = ours.map((place) => new Set(graph.kernels[place]?.nodes ?? []));
  const kernelOf = (loop: string): number => loops.findIndex((nodes) => nodes.has(loop));
  const [most] = lastingRefusals(graph)
    .filter(({ a, b }) => kernelOf(a) >= 0 && kernelOf(b) >= 0 && kernelOf(a) !== kernelOf(b))
    .sort((one, other) => other.stake - one.stake);
  return most ? { because: `Ours keeps ${most.a} and ${most.b} apart: ${most.decision.message}.`, decision: most.ref, pair: { a: most.a, b: most.b } } : null;
}

function fusionWithin(graph: Graph, place: number): Reason | null {
  const loops = new Set(graph.kernels[place]?.nodes ?? []);
  const fused = graph.decisions
    .map((decision, index) => ({ decision, index, saved: decision.score?.bytes_saved ?? 0 }))
    .filter(({ decision }) => decision.verdict === "fused" && isWithin(decision, graph, loops))
    .sort((one, other) => other.saved - one.saved);
  const [most] = fused;
  if (!most) return null;
  const [a, b] = [loopsBehind(most.decision.a, graph).at(-1), loopsBehind(most.decision.b, graph)[0]];
  return {
    because: `Ours fused ${most.decision.a} and ${most.decision.b}: ${most.decision.message}.`,
    decision: refsOf(graph).decision(most.index),
    pair: a && b ? { a, b } : null,
  };
}

function isWithin(decision: Decision, graph: Graph, loops: ReadonlySet<string>): boolean {
  return [decision.a, decision.b].every((side) => loopsBehind(side, graph).some((loop) => loops.has(loop)));
}

/** Those that a decision explains first; the same difference of equal layers once. */
function onceEach(found: readonly Difference[]): Difference[] {
  const told = new Map<string, Difference>();
  for (const one of found) {
    const key = [one.graph, one.kind, one.ours.length, one.theirs.length, one.nodes.map((name) => name.replace(/_?\d+/g, "")).join()].join(" ");
    const known = told.get(key);
    if (known) known.count += 1;
    else told.set(key, { ...one });
  }
  const rank = (one: Difference): number => (one.decision !== null ? 0 : 1) + (one.kind.endsWith("alone") ? 2 : 0);
  return [...told.values()].sort((one, other) => rank(one) - rank(other));
}

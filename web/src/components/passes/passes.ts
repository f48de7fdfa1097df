/**
 * What each of our passes made of a graph, as lines before and after it: capture → operators → loops → rounds of fusion. Pure.
 *
 * Captured nodes and operators have names of their own, so a line says what is computed, of which shape, for which line
 * of the snippet: what both graphs compute alike is then equal, and only what was decomposed, rewritten or removed differs.
 */
import * as format from "../../format";
import { shortTarget } from "../../graph/map";
import { type GraphRefs, type Ref, refsOf } from "../../links";
import type { FxNode, Graph, LoopNode } from "../../report";
import { unitsAfter } from "../../rounds";

export interface PassLine {
  text: string;
  ref: Ref;
}

export interface Pass {
  id: string;
  label: string;
  /** What the pass does, in a sentence. */
  about: string;
  before: PassLine[];
  after: PassLine[];
}

/** The passes that the report has both sides of, in order. A round that fused nothing changed nothing, and is none. */
export function passesOf(graph: Graph): Pass[] {
  const refs = refsOf(graph);
  return [...decomposed(graph, refs), ...lowered(graph, refs), ...fusing(graph, refs)];
}

function decomposed(graph: Graph, refs: GraphRefs): Pass[] {
  if (graph.fx.length === 0 || graph.aten.length === 0) return [];
  const replaced = graph.rewrites.filter((one) => one.verdict === "replaced").length;
  const about = `Dynamo's graph becomes ATen's operators: decomposed and functional${replaced ? `, with ${format.count(replaced, "rewrite")} of ours` : ""}.`;
  return [{ id: "operators", label: "Operators", about, before: nodeLines(graph.fx, refs.fx), after: nodeLines(graph.aten, refs.aten) }];
}

function lowered(graph: Graph, refs: GraphRefs): Pass[] {
  if (graph.aten.length === 0 || graph.loops.length === 0) return [];
  const gone = graph.removed.length ? ` ${format.count(graph.removed.length, "node")} needed no work.` : "";
  const about = `Operators become loops over their elements, and library calls.${gone}`;
  return [{ id: "loops", label: "Loops", about, before: nodeLines(graph.aten, refs.aten), after: graph.loops.flatMap((loop) => loopLines(loop, refs)) }];
}

function fusing(graph: Graph, refs: GraphRefs): Pass[] {
  const rounds = graph.rounds.filter((round) => round.fused.length > 0);
  return rounds.map(({ number, fused, refused }) => ({
    id: `round-${number}`,
    label: `Round ${number}`,
    about: `${format.count(fused.length, "fusion")}, ${format.count(refused, "refusal")}. Each line is one kernel.`,
    // A graph of many kernels has hundreds of rounds, of which one is looked at.
    get before() {
      return unitLines(graph, number - 1, refs);
    },
    get after() {
      return unitLines(graph, number, refs);
    },
  }));
}

function nodeLines(nodes: readonly FxNode[], toRef: (name: string) => Ref): PassLine[] {
  return nodes.filter((node) => node.op !== "output").map((node) => ({ text: nodeText(node), ref: toRef(node.name) }));
}

function nodeText(node: FxNode): string {
  const isInput = node.op === "placeholder";
  const what = isInput ? "input" : shortTarget(node);
  // Of an input, Dynamo's graph has the line that reads it first, and the operators' has none.
  const where = !isInput && node.lines.length > 0 ? `line ${node.lines.at(-1)}` : "";
  return [what, format.shape(node.shape), node.dtype ?? "", where].filter(Boolean).join("  ");
}

function loopLines(loop: LoopNode, refs: GraphRefs): PassLine[] {
  const over = loop.reduction_sizes.length > 0 ? ` over ${format.shape(loop.reduction_sizes)}` : "";
  const head = `${loop.name}: ${loop.kind === "extern" ? "library call" : loop.kind} ${format.shape(loop.sizes)}${over}${loop.dead ? ", dead" : ""}`;
  return [head, ...loop.body.map((line) => `    ${line}`)].map((text) => ({ text, ref: refs.loop(loop.name) }));
}

/** In the order of the first loop of each, so that what a round leaves alone keeps its place. */
function unitLines(graph: Graph, round: number, refs: GraphRefs): PassLine[] {
  const places = new Map(graph.loops.map((loop, place) => [loop.name, place]));
  const origins = new Map(graph.loops.map((loop) => [loop.name, loop.origins]));
  const ordered = unitsAfter(graph, round).map((names) => [...names].sort((one, other) => places.get(one)! - places.get(other)!));
  ordered.sort((one, other) => places.get(one[0]!)! - places.get(other[0]!)!);
  const textOf = (names: string[]): string => `${names.join(" + ")}: ${[...new Set(names.flatMap((name) => origins.get(name) ?? []))].join(", ")}`;
  return ordered.map((names) => ({ text: textOf(names), ref: refs.loop(names[0]!) }));
}

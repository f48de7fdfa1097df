/**
 * What belongs together in a report: user line ↔ FX node ↔ aten node ↔ loop node ↔ buffer ↔ edge ↔ kernel ↔ kernel
 * line ↔ decision.
 *
 * Every view names what it shows by a `Ref` and asks for its partners; no view knows another. The relation is
 * symmetric by construction, and it is not closed transitively: two operations of one kernel are both partners of the
 * kernel, but not of each other, or hovering anything would light everything.
 *
 * A thing of a graph carries the graph's name in its ref, `aten:graph_0/mul`: all graphs of a report are on screen at
 * one time, and two of them may have a `mul`. A user's line and a kernel of the peer belong to no graph.
 */
import { computedBy } from "./graph/covering";
import type { Decision, FxNode, Graph, Kernel, KernelLine, LoopNode, PeerKernel } from "./report";

export type Ref = string;

export const ref = {
  line: (line: number): Ref => `line:${line}`,
  /** A kernel of the peer, by its place in launch order. */
  peer: (place: number): Ref => `peer:${place}`,
  /** A line of its source. */
  peerLine: (place: number, line: number): Ref => `code:peer ${place}:${line}`,
};

/** Refs of what one graph has. */
export interface GraphRefs {
  fx(name: string): Ref;
  aten(name: string): Ref;
  loop(name: string): Ref;
  buffer(name: string): Ref;
  /** Kernels go by their place in launch order: a library function may be called twice. */
  kernel(place: number): Ref;
  /** `rendering` is 0 for the kernel's own source, and 1, 2, … for its `also`. */
  kernelLine(place: number, rendering: number, line: number): Ref;
  decision(index: number): Ref;
  /** A tensor on its way to one of its readers. */
  edge(tensor: string, consumer: string): Ref;
}

export function refsOf({ name: graph }: Pick<Graph, "name">): GraphRefs {
  return {
    fx: (name) => `fx:${graph}/${name}`,
    aten: (name) => `aten:${graph}/${name}`,
    loop: (name) => `loop:${graph}/${name}`,
    buffer: (name) => `buffer:${graph}/${name}`,
    kernel: (place) => `kernel:${graph}/${place}`,
    kernelLine: (place, rendering, line) => `code:${graph}/${place}:${rendering}:${line}`,
    decision: (index) => `decision:${graph}/${index}`,
    edge: (tensor, consumer) => `edge:${graph}/${tensor} ${consumer}`,
  };
}

/** A thing about one line is lit with that line; a thing about none is not lit. */
export function refOfLine(line: number | null | undefined): Ref | undefined {
  return line == null ? undefined : ref.line(line);
}

export type RefKind = "line" | "fx" | "aten" | "loop" | "buffer" | "kernel" | "code" | "peer" | "decision" | "edge";

export function kindOf(item: Ref): RefKind {
  return item.slice(0, item.indexOf(":")) as RefKind;
}

/** Name of the graph that it belongs to; null of a line, of a kernel of the peer and of a line of its source. */
export function graphNameOf(item: Ref): string | null {
  const slash = item.indexOf("/");
  return slash < 0 ? null : item.slice(item.indexOf(":") + 1, slash);
}

/** What it is called within its graph: `mul`, `3`. */
export function nameIn(item: Ref): string {
  const slash = item.indexOf("/");
  return item.slice((slash < 0 ? item.indexOf(":") : slash) + 1);
}

/** The number in a ref to a line, a kernel, a peer's kernel or a decision. */
export function numberIn(item: Ref): number {
  return Number(nameIn(item));
}

const NOTHING: ReadonlySet<Ref> = new Set();

/** The partners of each thing, kept by their kind: most who ask want one kind. */
export class Links {
  private readonly partnersOf = new Map<Ref, Map<RefKind, Set<Ref>>>();

  join(one: Ref, other: Ref): void {
    if (one === other) return;
    this.side(one, kindOf(other)).add(other);
    this.side(other, kindOf(one)).add(one);
  }

  joinAll(one: Ref, others: Iterable<Ref>): void {
    for (const other of others) this.join(one, other);
  }

  partners(item: Ref): ReadonlySet<Ref> {
    const kinds = this.partnersOf.get(item);
    return kinds ? new Set([...kinds.values()].flatMap((partners) => [...partners])) : NOTHING;
  }

  has(item: Ref): boolean {
    return this.partnersOf.has(item);
  }

  partnersOfKind(item: Ref, kind: RefKind): ReadonlySet<Ref> {
    return this.partnersOf.get(item)?.get(kind) ?? NOTHING;
  }

  /** Numbers of the partners of a kind that goes by number, in order; of one graph where a name is given. */
  numbersOf(item: Ref, kind: "line" | "kernel" | "peer" | "decision", graph: string | null = null): number[] {
    return [...this.partnersOfKind(item, kind)]
      .filter((partner) => graph === null || graphNameOf(partner) === graph)
      .map(numberIn)
      .sort((one, other) => one - other);
  }

  private side(item: Ref, kind: RefKind): Set<Ref> {
    let kinds = this.partnersOf.get(item);
    if (!kinds) this.partnersOf.set(item, (kinds = new Map<RefKind, Set<Ref>>()));
    let side = kinds.get(kind);
    if (!side) kinds.set(kind, (side = new Set()));
    return side;
  }
}

const namesOfLoops = new WeakMap<Graph, ReadonlySet<string>>();

/** Kept for each graph: it is asked for once a decision, and a large graph has thousands. */
function loopNames(graph: Graph): ReadonlySet<string> {
  let names = namesOfLoops.get(graph);
  if (!names) namesOfLoops.set(graph, (names = new Set(graph.loops.map((loop) => loop.name))));
  return names;
}

/** Names of the loop nodes behind a name in a decision: a loop node, a kernel, or a group such as `buf1+buf2`. */
export function loopsBehind(name: string, graph: Graph): string[] {
  const known = loopNames(graph);
  if (known.has(name)) return [name];
  const kernel = graph.kernels.find((candidate) => candidate.name === name);
  if (kernel) return kernel.nodes.filter((node) => known.has(node));
  const named = name.split(/[\s+,&]+/).filter((part) => known.has(part));
  return [...new Set(named)];
}

export function linksOf(graphs: readonly Graph[], peers: readonly PeerKernel[] = []): Links {
  const links = new Links();
  for (const _step of linking(links, graphs, peers)) continue;
  return links;
}

/** Fills `links` in small steps: a large report takes longer than a page may stand still. */
export function* linking(links: Links, graphs: readonly Graph[], peers: readonly PeerKernel[] = []): Generator<void> {
  for (const graph of graphs) {
    yield* joinFx(links, graph);
    yield* joinLoops(links, graph);
    const names = namesOf(graph);
    for (const [place, kernel] of graph.kernels.entries()) {
      joinKernel(links, graph, kernel, place, names);
      yield;
    }
  }
  yield* joinPeers(links, graphs, peers);
  for (const graph of graphs) {
    for (const [index, decision] of graph.decisions.entries()) {
      joinDecision(links, graph, decision, index);
      yield;
    }
    yield* joinEdges(links, graph);
  }
}

/** A line that became more operations than this, as a call of a whole encoder does, says nothing about any of them. */
const OPERATIONS_OF_A_LINE = 64;

/** The FX graph of Dynamo keeps no names of the aten graph, so those two meet at the user's lines. */
function* joinFx(links: Links, graph: Graph): Generator<void> {
  const refs = refsOf(graph);
  const onLine = new Map<number, Ref[]>();
  for (const node of graph.aten) {
    links.joinAll(refs.aten(node.name), node.lines.map(ref.line));
    for (const line of node.lines) {
      const operations = onLine.get(line);
      if (!operations) onLine.set(line, [refs.aten(node.name)]);
      else if (operations.length <= OPERATIONS_OF_A_LINE) operations.push(refs.aten(node.name));
    }
    yield;
  }
  for (const node of graph.fx) {
    yield;
    links.joinAll(refs.fx(node.name), node.lines.map(ref.line));
    if (node.op === "placeholder" || node.op === "output") continue;
    for (const line of node.lines) {
      const operations = onLine.get(line) ?? [];
      if (operations.length <= OPERATIONS_OF_A_LINE) links.joinAll(refs.fx(node.name), operations);
    }
  }
}

function* joinLoops(links: Links, graph: Graph): Generator<void> {
  const refs = refsOf(graph);
  for (const loop of graph.loops) {
    yield;
    links.join(refs.loop(loop.name), refs.buffer(loop.name));
    for (const self of [refs.loop(loop.name), refs.buffer(loop.name)]) {
      links.joinAll(self, loop.origins.map(refs.aten));
      links.joinAll(self, loop.lines.map(ref.line));
    }
    for (const access of loop.reads) links.join(refs.loop(loop.name), refs.buffer(access.buffer));
    for (const origin of loop.origins) {
      links.joinAll(refs.loop(loop.name), links.partnersOfKind(refs.aten(origin), "fx"));
    }
  }
}

/** What a graph has, by name. */
interface Names {
  loops: ReadonlyMap<string, LoopNode>;
  nodes: ReadonlyMap<string, FxNode>;
}

function namesOf(graph: Graph): Names {
  return { loops: new Map(graph.loops.map((loop) => [loop.name, loop])), nodes: new Map(graph.aten.map((node) => [node.name, node])) };
}

function joinKernel(links: Links, graph: Graph, kernel: Kernel, place: number, names: Names): void {
  const refs = refsOf(graph);
  const self = refs.kernel(place);
  const computed = computedBy(kernel);
  const loops = computed.flatMap((name) => names.loops.get(name) ?? []);
  const origins = new Set([...kernel.origins, ...loops.flatMap((loop) => loop.origins)]);
  const lines = new Set([...kernel.user_lines, ...loops.flatMap((loop) => loop.lines)]);
  links.joinAll(self, loops.map((loop) => refs.loop(loop.name)));
  links.joinAll(self, [...computed, ...kernel.reads, ...kernel.writes].map(refs.buffer));
  links.joinAll(self, [...lines].map(ref.line));
  for (const origin of origins) {
    links.join(self, refs.aten(origin));
    links.joinAll(self, links.partnersOfKind(refs.aten(origin), "fx"));
  }
  const renderings: KernelLine[][] = [kernel.lines, ...kernel.also.map((artifact) => artifact.lines)];
  renderings.forEach((mapped, rendering) => joinKernelLines(links, graph, place, rendering, mapped, names));
}

/** A kernel line may name loop nodes or FX nodes: the exact one that it names is lit, with what lies behind it. */
function joinKernelLines(links: Links, graph: Graph, place: number, rendering: number, mapped: KernelLine[], { loops, nodes: byName }: Names): void {
  const refs = refsOf(graph);
  for (const { line, nodes, user_lines: userLines } of mapped) {
    const self = refs.kernelLine(place, rendering, line);
    links.join(self, refs.kernel(place));
    links.joinAll(self, userLines.map(ref.line));
    const namesFxNodes = nodes.some((node) => !loops.has(node));
    for (const node of nodes) {
      const loop = loops.get(node);
      if (!loop) {
        links.join(self, refs.aten(node));
        continue;
      }
      links.join(self, refs.loop(node));
      links.join(self, refs.buffer(node));
      if (!namesFxNodes) links.joinAll(self, originsOnLines(byName, loop.origins, userLines).map(refs.aten));
      if (userLines.length === 0) links.joinAll(self, loop.lines.map(ref.line));
    }
  }
}

/** The peer's kernels, and their lines, meet ours at the operations that both compute. */
function* joinPeers(links: Links, graphs: readonly Graph[], peers: readonly PeerKernel[]): Generator<void> {
  const refsByName = new Map(graphs.map((graph) => [graph.name, refsOf(graph)]));
  for (const [place, kernel] of peers.entries()) {
    const refs = refsByName.get(kernel.graph ?? "");
    const self = ref.peer(place);
    links.joinAll(self, kernel.user_lines.map(ref.line));
    for (const name of refs ? kernel.origins : []) {
      const aten = refs!.aten(name);
      links.join(self, aten);
      for (const kind of ["fx", "kernel"] as const) links.joinAll(self, links.partnersOfKind(aten, kind));
    }
    for (const { line, nodes, user_lines: userLines } of kernel.lines) {
      const code = ref.peerLine(place, line);
      links.join(code, self);
      links.joinAll(code, userLines.map(ref.line));
      if (refs) links.joinAll(code, nodes.map(refs.aten));
    }
    yield;
  }
}

/** Of a loop node made from several operations, those of the lines that this kernel line speaks of. */
function originsOnLines(nodes: ReadonlyMap<string, FxNode>, origins: string[], lines: number[]): string[] {
  if (lines.length === 0) return origins;
  const wanted = new Set(lines);
  const onLines = origins.filter((origin) => nodes.get(origin)?.lines.some((line) => wanted.has(line)));
  return onLines.length > 0 ? onLines : origins;
}

function joinDecision(links: Links, graph: Graph, decision: Decision, index: number): void {
  const refs = refsOf(graph);
  const self = refs.decision(index);
  links.joinAll(self, decision.lines.map(ref.line));
  for (const loop of [...loopsBehind(decision.a, graph), ...loopsBehind(decision.b, graph)]) {
    links.join(self, refs.loop(loop));
    links.join(self, refs.buffer(loop));
    for (const kind of ["aten", "kernel", "code", "line"] as const) {
      links.joinAll(self, links.partnersOfKind(refs.loop(loop), kind));
    }
  }
}

/** An edge stands for its tensor and both its ends, with the operations and lines behind them. */
function* joinEdges(links: Links, graph: Graph): Generator<void> {
  const refs = refsOf(graph);
  for (const edge of graph.traffic?.edges ?? []) {
    const self = refs.edge(edge.tensor, edge.consumer);
    links.join(self, refs.buffer(edge.tensor));
    if (edge.producer === null) links.join(self, refs.aten(edge.tensor));
    for (const loop of edge.producer === null ? [edge.consumer] : [edge.producer, edge.consumer]) {
      links.join(self, refs.loop(loop));
      for (const kind of ["aten", "kernel", "line"] as const) links.joinAll(self, links.partnersOfKind(refs.loop(loop), kind));
    }
    yield;
  }
}

/**
 * What belongs together in one graph: user line ↔ FX node ↔ aten node ↔ loop node ↔ buffer ↔ edge ↔ kernel ↔ kernel
 * line ↔ decision.
 *
 * Every view names what it shows by a `Ref` and asks for its partners; no view knows another. The relation is
 * symmetric by construction, and it is not closed transitively: two operations of one kernel are both partners of the
 * kernel, but not of each other, or hovering anything would light everything.
 */
import type { Graph, Kernel, KernelLine } from "./report";

export type Ref = string;

export const ref = {
  line: (line: number): Ref => `line:${line}`,
  fx: (name: string): Ref => `fx:${name}`,
  aten: (name: string): Ref => `aten:${name}`,
  loop: (name: string): Ref => `loop:${name}`,
  buffer: (name: string): Ref => `buffer:${name}`,
  /** Kernels go by their place in launch order: a library function may be called twice. */
  kernel: (place: number): Ref => `kernel:${place}`,
  /** `rendering` is 0 for the kernel's own source, and 1, 2, … for its `also`. */
  kernelLine: (place: number, rendering: number, line: number): Ref => `code:${place}:${rendering}:${line}`,
  /** A kernel of the peer. */
  peer: (place: number): Ref => `peer:${place}`,
  decision: (index: number): Ref => `decision:${index}`,
  /** A tensor on its way to one of its readers. */
  edge: (tensor: string, consumer: string): Ref => `edge:${tensor} ${consumer}`,
};

/** A thing about one line is lit with that line; a thing about none is not lit. */
export function refOfLine(line: number | null | undefined): Ref | undefined {
  return line == null ? undefined : ref.line(line);
}

export type RefKind = "line" | "fx" | "aten" | "loop" | "buffer" | "kernel" | "code" | "peer" | "decision" | "edge";

export function kindOf(item: Ref): RefKind {
  return item.slice(0, item.indexOf(":")) as RefKind;
}

/** The number in a ref to a line, a kernel, a peer's kernel or a decision. */
export function numberIn(item: Ref): number {
  return Number(item.slice(item.indexOf(":") + 1));
}

const NOTHING: ReadonlySet<Ref> = new Set();

export class Links {
  private readonly partnersOf = new Map<Ref, Set<Ref>>();

  join(one: Ref, other: Ref): void {
    if (one === other) return;
    this.side(one).add(other);
    this.side(other).add(one);
  }

  joinAll(one: Ref, others: Iterable<Ref>): void {
    for (const other of others) this.join(one, other);
  }

  partners(item: Ref): ReadonlySet<Ref> {
    return this.partnersOf.get(item) ?? NOTHING;
  }

  partnersOfKind(item: Ref, kind: RefKind): Ref[] {
    return [...this.partners(item)].filter((partner) => kindOf(partner) === kind);
  }

  /** Numbers of the partners of a kind that goes by number, in order. */
  numbersOf(item: Ref, kind: "line" | "kernel" | "peer" | "decision"): number[] {
    return this.partnersOfKind(item, kind).map(numberIn).sort((one, other) => one - other);
  }

  private side(item: Ref): Set<Ref> {
    let side = this.partnersOf.get(item);
    if (!side) this.partnersOf.set(item, (side = new Set()));
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

export function linksOf(graph: Graph, peers: readonly Kernel[] = []): Links {
  const links = new Links();
  joinFx(links, graph);
  joinLoops(links, graph);
  graph.kernels.forEach((kernel, place) => joinKernel(links, graph, kernel, place));
  peers.forEach((kernel, place) => joinPeer(links, graph, kernel, place));
  joinDecisions(links, graph);
  joinEdges(links, graph);
  return links;
}

/** The FX graph of Dynamo keeps no names of the aten graph, so those two meet at the user's lines. */
function joinFx(links: Links, graph: Graph): void {
  for (const node of graph.aten) links.joinAll(ref.aten(node.name), node.lines.map(ref.line));
  for (const node of graph.fx) {
    links.joinAll(ref.fx(node.name), node.lines.map(ref.line));
    if (node.op === "placeholder" || node.op === "output") continue;
    for (const line of node.lines) {
      links.joinAll(ref.fx(node.name), links.partnersOfKind(ref.line(line), "aten"));
    }
  }
}

function joinLoops(links: Links, graph: Graph): void {
  for (const loop of graph.loops) {
    links.join(ref.loop(loop.name), ref.buffer(loop.name));
    for (const self of [ref.loop(loop.name), ref.buffer(loop.name)]) {
      links.joinAll(self, loop.origins.map(ref.aten));
      links.joinAll(self, loop.lines.map(ref.line));
    }
    for (const access of loop.reads) links.join(ref.loop(loop.name), ref.buffer(access.buffer));
    for (const origin of loop.origins) {
      links.joinAll(ref.loop(loop.name), links.partnersOfKind(ref.aten(origin), "fx"));
    }
  }
}

function joinKernel(links: Links, graph: Graph, kernel: Kernel, place: number): void {
  const self = ref.kernel(place);
  const covered = new Set(kernel.nodes);
  const loops = graph.loops.filter((loop) => covered.has(loop.name));
  const origins = new Set([...kernel.origins, ...loops.flatMap((loop) => loop.origins)]);
  const lines = new Set([...kernel.user_lines, ...loops.flatMap((loop) => loop.lines)]);
  links.joinAll(self, loops.map((loop) => ref.loop(loop.name)));
  links.joinAll(self, [...kernel.nodes, ...kernel.reads, ...kernel.writes].map(ref.buffer));
  links.joinAll(self, [...lines].map(ref.line));
  for (const origin of origins) {
    links.join(self, ref.aten(origin));
    links.joinAll(self, links.partnersOfKind(ref.aten(origin), "fx"));
  }
  const renderings: KernelLine[][] = [kernel.lines, ...kernel.also.map((artifact) => artifact.lines)];
  renderings.forEach((mapped, rendering) => joinKernelLines(links, graph, place, rendering, mapped));
}

/** A kernel line may name loop nodes or FX nodes: the exact one that it names is lit, with what lies behind it. */
function joinKernelLines(links: Links, graph: Graph, place: number, rendering: number, mapped: KernelLine[]): void {
  const loops = new Map(graph.loops.map((loop) => [loop.name, loop]));
  for (const { line, nodes, user_lines: userLines } of mapped) {
    const self = ref.kernelLine(place, rendering, line);
    links.join(self, ref.kernel(place));
    links.joinAll(self, userLines.map(ref.line));
    const namesFxNodes = nodes.some((node) => !loops.has(node));
    for (const node of nodes) {
      const loop = loops.get(node);
      if (!loop) {
        links.join(self, ref.aten(node));
        continue;
      }
      links.join(self, ref.loop(node));
      links.join(self, ref.buffer(node));
      if (!namesFxNodes) links.joinAll(self, originsOnLines(graph, loop.origins, userLines).map(ref.aten));
      if (userLines.length === 0) links.joinAll(self, loop.lines.map(ref.line));
    }
  }
}

/** The peer's kernels meet ours at the operations that both cover; those of other graphs have none here. */
function joinPeer(links: Links, graph: Graph, kernel: Kernel, place: number): void {
  const known = new Set(graph.aten.map((node) => node.name));
  const origins = kernel.origins.filter((origin) => known.has(origin));
  for (const origin of origins) {
    links.join(ref.peer(place), ref.aten(origin));
    for (const kind of ["fx", "kernel", "line"] as const) {
      links.joinAll(ref.peer(place), links.partnersOfKind(ref.aten(origin), kind));
    }
  }
}

/** Of a loop node made from several operations, those of the lines that this kernel line speaks of. */
function originsOnLines(graph: Graph, origins: string[], lines: number[]): string[] {
  if (lines.length === 0) return origins;
  const wanted = new Set(lines);
  const onLines = graph.aten
    .filter((node) => origins.includes(node.name) && node.lines.some((line) => wanted.has(line)))
    .map((node) => node.name);
  return onLines.length > 0 ? onLines : origins;
}

function joinDecisions(links: Links, graph: Graph): void {
  graph.decisions.forEach((decision, index) => {
    const self = ref.decision(index);
    links.joinAll(self, decision.lines.map(ref.line));
    for (const loop of [...loopsBehind(decision.a, graph), ...loopsBehind(decision.b, graph)]) {
      links.join(self, ref.loop(loop));
      links.join(self, ref.buffer(loop));
      for (const kind of ["aten", "kernel", "code", "line"] as const) {
        links.joinAll(self, links.partnersOfKind(ref.loop(loop), kind));
      }
    }
  });
}

/** An edge stands for its tensor and both its ends, with the operations and lines behind them. */
function joinEdges(links: Links, graph: Graph): void {
  for (const edge of graph.traffic?.edges ?? []) {
    const self = ref.edge(edge.tensor, edge.consumer);
    links.join(self, ref.buffer(edge.tensor));
    if (edge.producer === null) links.join(self, ref.aten(edge.tensor));
    for (const loop of edge.producer === null ? [edge.consumer] : [edge.producer, edge.consumer]) {
      links.join(self, ref.loop(loop));
      for (const kind of ["aten", "kernel", "line"] as const) links.joinAll(self, links.partnersOfKind(ref.loop(loop), kind));
    }
  }
}

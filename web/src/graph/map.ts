/** From a report's graph to what is drawn: nodes, edges, and one frame for each kernel and each set of equal layers. Pure. */
import * as format from "../format";
import { type GraphRefs, type Links, type Ref, refsOf } from "../links";
import { edgeSentence, isSaved, trafficOfEdges } from "../moved";
import type { EdgeTraffic, FxNode, Graph } from "../report";
import { isInput, shortTarget } from "./covering";
import { type Look, type Plan, planOf } from "./plan";
import { moduleIn, mostCommon } from "./repeats";

export { shortTarget } from "./covering";
export { COLLAPSE_ABOVE, type Look } from "./plan";

export interface MapNode {
  id: string;
  ref: Ref;
  label: string;
  detail: string;
  role: "input" | "operation" | "output" | "group";
  /** Places, in launch order, of the kernels that cover this node: several where it is computed again. */
  kernels: number[];
  dead: boolean;
  /** A result of the graph, where results have no node of their own. */
  isResult: boolean;
  title: string;
  /** The nodes of the graph that it stands for; views and inputs that it tells of are not among them. */
  members: string[];
  width: number;
  height: number;
}

export interface MapEdge {
  from: string;
  to: string;
  bytes: number;
  /** "plain" where nothing moves: a view, or what a dead node would read. */
  kind: "memory" | "register" | "plain";
  ref: Ref | undefined;
  /** Both ends as loop nodes, for the question why; null where one is an input. */
  pair: { a: string; b: string } | null;
  title: string;
}

export interface Cluster {
  id: string;
  kind: "kernel" | "layers" | "module";
  parent: string | null;
  /** Ids of nodes that lie in it and in no cluster within it. */
  members: string[];
  label: string;
  title: string;
  /** Of a kernel: its place. */
  kernel: number | null;
  /** Of equal layers: how many, and which one is drawn. */
  count: number;
  shown: number;
}

export interface MapGraph {
  graph: string;
  nodes: MapNode[];
  edges: MapEdge[];
  clusters: Cluster[];
  collapsed: boolean;
  /** The id of what is drawn for each node of the graph: for a view or an input that is told of in its reader, the reader. */
  idOf: ReadonlyMap<string, string>;
  /** The equal layer that a node is in, as `r12:4`: opening that draws it. */
  layerOf(name: string): string | null;
}

/** Between two kernels of a large graph run many tensors. */
const SENTENCES_AT_MOST = 6;
/** More results than this leave the node that gathers them out: every line would lead there. */
const RESULTS_AT_MOST = 6;
const CHARACTER = 7.9;
/** Room on both sides, so that what a node says stays in its middle. */
const BUTTON = 26;
const LABEL_AT_MOST = 30;

export function mapOf(graph: Graph, look: Look, links: Links): MapGraph {
  const plan = planOf(graph, look, links);
  const flow = flowOf(plan);
  const drawn = new Map<string, MapNode>();
  for (const node of plan.nodes) {
    const id = plan.idOf(node.name);
    if (id === null || plan.isHidden(node.name) || flow.leftOut.has(node.name)) continue;
    const known = drawn.get(id);
    if (known) known.members.push(node.name);
    else drawn.set(id, id === node.name ? single(plan, node) : group(plan, id, node));
  }
  const byName = new Map(plan.nodes.map((node) => [node.name, node]));
  for (const node of drawn.values()) finish(plan, node, flow, byName);
  const edges = edgesOf(plan, flow, drawn, byName);
  return {
    graph: graph.name, nodes: [...drawn.values()], edges, clusters: clustersOf(plan, drawn), collapsed: plan.collapsed,
    idOf: flow.standIn(drawn), layerOf: plan.layerOf,
  };
}

interface Flow {
  /** Each step from a node that is drawn to one that reads it, with the argument that the reader names. */
  steps: { from: string; to: string; argument: string }[];
  /** Inputs and gathered results that have no node of their own. */
  leftOut: ReadonlySet<string>;
  /** What a reader tells of: views that it reads through, inputs that it alone reads. */
  viewsOf: ReadonlyMap<string, Set<string>>;
  inputsOf: ReadonlyMap<string, Set<string>>;
  results: ReadonlySet<string>;
  standIn(drawn: ReadonlyMap<string, MapNode>): Map<string, string>;
}

function flowOf(plan: Plan): Flow {
  const byName = new Map(plan.nodes.map((node) => [node.name, node]));
  const steps: Flow["steps"] = [];
  const viewsOf = new Map<string, Set<string>>();
  const readersOf = new Map<string, Set<string>>();
  const readByHidden = new Set<string>();
  for (const node of plan.nodes) {
    const id = plan.idOf(node.name);
    if (id === null) continue;
    for (const argument of node.args) {
      const { sources, through } = lookThrough(argument, plan, byName);
      for (const view of through) add(viewsOf, id, view);
      for (const from of sources) {
        steps.push({ from, to: node.name, argument });
        // What a training step gives back of its inputs is no reading: the layer that computes with them tells of them.
        if (plan.isHidden(node.name)) readByHidden.add(from);
        else if (node.op !== "output" || !plan.foldsInputs) add(readersOf, from, id);
      }
    }
  }
  const inputsOf = new Map<string, Set<string>>();
  const leftOut = new Set<string>();
  for (const node of plan.nodes) {
    if (!isInput(node)) continue;
    const readers = readersOf.get(node.name);
    const isReadByHidden = !readers && readByHidden.has(node.name);
    const [reader] = readers ?? [];
    const isTold = plan.foldsInputs && readers?.size === 1;
    if (isTold && reader) add(inputsOf, reader, node.name);
    if (isTold || isReadByHidden) leftOut.add(node.name);
  }
  const output = plan.nodes.find((node) => node.op === "output");
  const results = new Set(steps.filter((step) => step.to === output?.name).map((step) => step.from));
  const isGathered = output !== undefined && results.size > RESULTS_AT_MOST;
  if (isGathered) leftOut.add(output.name);
  const standIn = (drawn: ReadonlyMap<string, MapNode>): Map<string, string> => standInsOf(plan, drawn, viewsOf, inputsOf, readersOf);
  return { steps, leftOut, viewsOf, inputsOf, results: isGathered ? results : new Set(), standIn };
}

function add(into: Map<string, Set<string>>, key: string, value: string): void {
  const known = into.get(key);
  if (known) known.add(value);
  else into.set(key, new Set([value]));
}

/** The nodes behind an argument, and the views between; a chain of views may be long, so this is no recursion. */
function lookThrough(argument: string, plan: Plan, byName: ReadonlyMap<string, FxNode>): { sources: string[]; through: string[] } {
  const sources: string[] = [];
  const through: string[] = [];
  const open = [argument];
  const seen = new Set<string>();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (!plan.isView(next)) sources.push(next);
    else {
      through.push(next);
      open.push(...(byName.get(next)?.args ?? []));
    }
  }
  return { sources, through };
}

function standInsOf(plan: Plan, drawn: ReadonlyMap<string, MapNode>, ...told: ReadonlyMap<string, Set<string>>[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const node of plan.nodes) {
    const id = plan.idOf(node.name);
    if (id !== null && drawn.has(id)) found.set(node.name, id);
  }
  for (const [reader, names] of [...(told[0] ?? []), ...(told[1] ?? [])]) {
    for (const name of names) if (!found.has(name) && drawn.has(reader)) found.set(name, reader);
  }
  for (const [name, readers] of told[2] ?? []) {
    const reader = [...readers].find((one) => drawn.has(one));
    if (!found.has(name) && reader) found.set(name, reader);
  }
  return found;
}

/** Of an operation that launches a Triton kernel of the snippet's own: its function. */
function ownKernel(plan: Plan, node: FxNode): string | null {
  if (!node.target.includes("triton_kernel_wrapper")) return null;
  const own = [...plan.kernelsOf(node.name)].map((place) => plan.graph.kernels[place]?.own).find((one) => one);
  return own?.function ?? null;
}

/** `mul_2`: the number that decisions and kernels know it by tells it from the other `mul`. */
function calledOnMap(node: FxNode): string {
  const operation = shortTarget(node);
  return node.name.replace(/_\d+$/, "") === operation ? node.name : operation;
}

function single(plan: Plan, node: FxNode): MapNode {
  const toRef = plan.look.level === "aten" ? refsOf(plan.graph).aten : refsOf(plan.graph).fx;
  const isSize = isInput(node) && node.shape === null && /^s\d+$/.test(node.name);
  const own = ownKernel(plan, node);
  const detail = own ? "your Triton kernel" : isSize ? "a size" : [format.shape(node.shape), format.dtype(node.dtype)].filter(Boolean).join(" ");
  const told = isSize ? "a size that differs from call to call" : detail && `${detail}, ${format.bytes(node.bytes)}`;
  const title = [own && `${own}, a Triton kernel of the snippet's own`, node.text || node.target, told, node.module && `in ${node.module}`, node.dead && "dead: no result uses it"];
  return {
    id: node.name, ref: toRef(node.name), label: cut(own ?? calledOnMap(node)), detail: cut(detail),
    role: node.op === "output" ? "output" : isInput(node) ? "input" : "operation",
    kernels: [...plan.kernelsOf(node.name)], dead: node.dead, isResult: false,
    title: title.filter(Boolean).join("\n"), members: [node.name], width: 0, height: 0,
  };
}

function group(plan: Plan, id: string, first: FxNode): MapNode {
  const toRef = plan.look.level === "aten" ? refsOf(plan.graph).aten : refsOf(plan.graph).fx;
  const place = id.startsWith("k") ? Number(id.slice(1)) : null;
  return {
    id, ref: place === null ? toRef(first.name) : refsOf(plan.graph).kernel(place), label: "", detail: "", role: "group",
    kernels: place === null ? [] : [place], dead: false, isResult: false, title: "", members: [first.name], width: 0, height: 0,
  };
}

/** What a node says is known once all that it stands for is. */
function finish(plan: Plan, node: MapNode, flow: Flow, byName: ReadonlyMap<string, FxNode>): void {
  if (node.role === "group") nameGroup(plan, node, byName);
  const inputs = [...(flow.inputsOf.get(node.id) ?? [])];
  const views = [...(flow.viewsOf.get(node.id) ?? [])];
  const bytes = inputs.reduce((sum, name) => sum + (byName.get(name)?.bytes ?? 0), 0);
  node.isResult = node.members.some((name) => flow.results.has(name));
  const told = [
    inputs.length > 0 && `reads ${format.count(inputs.length, "input")} that nothing else reads, ${format.bytes(bytes)}: ${listed(inputs)}`,
    views.length > 0 && `reads through ${format.count(views.length, "view")}: ${listed(views)}`,
    node.isResult && "a result of the graph",
  ];
  node.title = [node.title, ...told].filter(Boolean).join("\n");
  node.width = Math.max(50, Math.max(node.label.length, node.detail.length) * CHARACTER + (node.role === "group" ? 20 + 2 * BUTTON : 20));
  node.height = node.detail ? 38 : 26;
}

function listed(names: readonly string[]): string {
  return names.slice(0, SENTENCES_AT_MOST).join(", ") + (names.length > SENTENCES_AT_MOST ? ` and ${names.length - SENTENCES_AT_MOST} more` : "");
}

function nameGroup(plan: Plan, node: MapNode, byName: ReadonlyMap<string, FxNode>): void {
  const place = node.kernels[0];
  const kernel = place === undefined ? undefined : plan.graph.kernels[place];
  const members = node.members.flatMap((name) => byName.get(name) ?? []);
  const operations = [...new Set(members.filter((member) => !plan.isView(member.name)).map((member) => ownKernel(plan, member) ?? shortTarget(member)))];
  const words = operations.length <= 3 ? operations.join(", ") : `${operations.slice(0, 2).join(", ")} … ${operations.at(-1)}`;
  node.label = place === undefined ? cut(words) : cut(`K${place + 1} ${words}`);
  const bytes = kernel?.bytes ? `, ${format.bytes(kernel.bytes)}` : "";
  node.detail = `${format.count(members.length, "operation")}${bytes}`;
  const module = members.find((member) => member.module)?.module;
  node.title = [kernel?.name ?? words, module && `in ${module}`, "double-click to see its operations"].filter(Boolean).join("\n");
}

/** Names differ at their ends, so they are cut in the middle. */
export function cut(text: string, atMost: number = LABEL_AT_MOST): string {
  return text.length <= atMost ? text : `${text.slice(0, Math.ceil(atMost / 2) - 1)}…${text.slice(-Math.floor(atMost / 2))}`;
}

function edgesOf(plan: Plan, flow: Flow, drawn: ReadonlyMap<string, MapNode>, byName: ReadonlyMap<string, FxNode>): MapEdge[] {
  const traffic = plan.look.level === "aten" ? trafficOfEdges(plan.graph) : new Map<string, EdgeTraffic[]>();
  const refs = refsOf(plan.graph);
  const gathered = new Map<string, { from: MapNode; to: MapNode; bytes: number; traffic: Set<EdgeTraffic> }>();
  for (const { from, to, argument } of flow.steps) {
    const source = drawn.get(plan.idOf(from) ?? "");
    const target = drawn.get(plan.idOf(to) ?? "");
    if (!source || !target || source === target || flow.leftOut.has(from) || !isOneLayer(plan, from, to)) continue;
    const key = `${source.id} ${target.id}`;
    let known = gathered.get(key);
    if (!known) gathered.set(key, (known = { from: source, to: target, bytes: 0, traffic: new Set() }));
    known.bytes = Math.max(known.bytes, byName.get(from)?.bytes ?? 0);
    // Of equal layers the one that is drawn speaks.
    if (!plan.isHidden(to)) for (const edge of traffic.get(`${argument} ${to}`) ?? []) known.traffic.add(edge);
  }
  return [...gathered.values()].map((one) => edgeOf(refs, one.from, one.to, one.bytes, [...one.traffic], traffic.size > 0));
}

/** From one equal layer to the next a line would lead back to the top of the one that is drawn. */
function isOneLayer(plan: Plan, from: string, to: string): boolean {
  const [source, target] = [plan.layerOf(from), plan.layerOf(to)];
  return source === null || target === null || source === target || source.split(":")[0] !== target.split(":")[0];
}

/** The tensor with most bytes speaks for an edge; where nothing is counted, the kernels of both ends tell. */
function edgeOf(refs: GraphRefs, from: MapNode, to: MapNode, size: number, traffic: EdgeTraffic[], isCounted: boolean): MapEdge {
  const sorted = [...traffic].sort((one, other) => other.read_bytes - one.read_bytes);
  const most = sorted.find((edge) => !isSaved(edge)) ?? sorted[0];
  const isInOneKernel = from.kernels.some((place) => to.kernels.includes(place));
  const staysInside = most ? traffic.every(isSaved) : isInOneKernel;
  const isPlain = isCounted && !most && !isInOneKernel && to.role !== "output";
  const through = new Map(traffic.filter((edge) => !isSaved(edge)).map((edge) => [edge.tensor, edge.read_bytes]));
  const read = [...through.values()].reduce((sum, bytes) => sum + bytes, 0);
  const sentences = sorted.slice(0, SENTENCES_AT_MOST).map(edgeSentence);
  return {
    from: from.id, to: to.id, bytes: traffic.length > 0 ? read : size,
    kind: isPlain ? "plain" : staysInside ? "register" : "memory",
    ref: most && refs.edge(most.tensor, most.consumer),
    pair: most && most.producer !== null ? { a: most.producer, b: most.consumer } : null,
    title: [...sentences, traffic.length > SENTENCES_AT_MOST && `and ${traffic.length - SENTENCES_AT_MOST} more`].filter(Boolean).join("\n"),
  };
}

function layerOf(plan: Plan, node: MapNode): string | null {
  return plan.layerOf(node.members[0] ?? "")?.split(":")[0] ?? null;
}

/** The frame of each node: kernels one after another that ran in one module, where there are others beside them. */
function modulesOf(plan: Plan, drawn: ReadonlyMap<string, MapNode>): Map<string, Cluster> {
  const moduleOf = new Map(plan.nodes.map((node) => [node.name, moduleIn(node.module)]));
  const found = new Map<string, Cluster>();
  let run: MapNode[] = [];
  let key = "";
  const close = (): void => {
    const [first] = run;
    const [parent = "", title = ""] = key.split(" ");
    if (first && title !== "" && new Set(run.map((node) => node.kernels[0])).size > 1) {
      const cluster: Cluster = { id: `m${first.id}`, kind: "module", parent: parent || null, members: [], kernel: null, count: 1, shown: 0, label: title.split(".").at(-1) ?? "", title };
      for (const node of run) found.set(node.id, cluster);
    }
    run = [];
  };
  for (const node of drawn.values()) {
    if (node.kernels.length === 0) continue;
    const next = `${layerOf(plan, node) ?? ""} ${mostCommon(node.members.map((name) => moduleOf.get(name) ?? ""))}`;
    if (next !== key) close();
    key = next;
    run.push(node);
  }
  close();
  return found;
}

function clustersOf(plan: Plan, drawn: ReadonlyMap<string, MapNode>): Cluster[] {
  const clusters = new Map<string, Cluster>();
  for (const layers of plan.layers) {
    const name = layers.names[layers.shown];
    clusters.set(layers.id, {
      id: layers.id, kind: "layers", parent: null, members: [], kernel: null, count: layers.count, shown: layers.shown,
      label: name ? `${name}` : `layer ${layers.shown + 1}`,
      title: `${layers.count} times the same ${format.count(layers.period, "kernel")}${name ? `: ${layers.names[0]} to ${layers.names.at(-1)}` : ""}`,
    });
  }
  const modules = plan.collapsed ? modulesOf(plan, drawn) : new Map<string, Cluster>();
  for (const node of drawn.values()) {
    const module = modules.get(node.id);
    const layer = module?.id ?? layerOf(plan, node);
    if (module) clusters.set(module.id, module);
    const place = node.role === "group" ? undefined : node.kernels[0];
    if (place === undefined) {
      if (layer !== null) clusters.get(layer)?.members.push(node.id);
      continue;
    }
    const id = `k${place}`;
    const known = clusters.get(id);
    if (known) known.members.push(node.id);
    else {
      const name = plan.graph.kernels[place]?.name ?? "";
      clusters.set(id, { id, kind: "kernel", parent: layer, members: [node.id], kernel: place, count: 1, shown: 0, label: `K${place + 1}`, title: name });
    }
  }
  return [...clusters.values()].filter((cluster) => cluster.members.length > 0 || [...clusters.values()].some((child) => child.parent === cluster.id));
}

import { describe, expect, it } from "vitest";
import { instance } from "@viz-js/viz";
import { type Box, fromGraphviz, type GraphvizJson, type Layout, type Point, toDot } from "../graph/dot";
import { type Label, overlap, placeLabels } from "../graph/labels";
import { inColumns, needsColumns } from "../graph/columns";
import { COLLAPSE_ABOVE, type Look, mapOf, shortTarget } from "../graph/map";
import { costliestRefusals } from "../graph/refusals";
import { search } from "../graph/search";
import { inRunningOrder, stack } from "../graph/stack";
import { foldLayers, hasAllLayers, opened, showLayer } from "../components/map/look";
import { linksOf } from "../links";
import type { FxNode, Graph, GraphBreak, Kernel, Report } from "../report";
import { exampleGraph as graph, exampleReport } from "./example";

const look = (opened: string[] = [], level: Look["level"] = "aten", showViews = false): Look => ({ level, showViews, opened: new Set(opened) });
const draw = (one: Graph, asked = look()) => mapOf(one, asked, linksOf([one]));
const kernelBoxes = (one: Graph, asked = look()) => new Map(draw(one, asked).clusters.filter(({ kind }) => kind === "kernel").map(({ kernel, members }) => [kernel, members]));
const operation: FxNode = graph.aten.find((node) => node.name === "mul")!;

describe("the map of a graph", () => {
  it("puts each node into the box of the kernel that covers it", () => {
    const boxes = kernelBoxes(graph, look([], "aten", true));
    expect(boxes.get(0)).toEqual(["permute", "mm"]);
    expect(boxes.get(1)).toEqual(["mul", "amax", "sub", "exp", "sum_1", "div"]);
    expect(draw(graph).nodes.find((node) => node.id === "cos")).toMatchObject({ kernels: [], dead: true });
  });

  it("folds views into their reader, which tells of them", () => {
    const map = draw(graph);
    expect(map.nodes.map((node) => node.id)).not.toContain("permute");
    expect(map.nodes.find((node) => node.id === "mm")?.title).toContain("reads through 1 view: permute");
    expect(map.edges.map(({ from, to }) => `${from} ${to}`)).toContain("arg1_1 mm");
    expect(map.idOf.get("permute")).toBe("mm");
  });

  it("tells a value that stays in a kernel from one that goes through memory", () => {
    const kinds = new Map(draw(graph).edges.map((edge) => [`${edge.from} ${edge.to}`, edge.kind]));
    expect(kinds.get("mul amax")).toBe("register");
    expect(kinds.get("mm mul")).toBe("memory");
    expect(kinds.get("div output")).toBe("memory");
    expect(kinds.get("sub exp")).toBe("register");
    expect(kinds.get("arg0_1 cos")).toBe("plain");
  });

  it("boxes a Dynamo node only where its line leaves no doubt", () => {
    const boxes = kernelBoxes(graph, look([], "fx"));
    expect(boxes.get(1)).toContain("scaled");
    expect([...boxes.values()].flat()).not.toContain("relu_");
  });

  it("names a Triton kernel of the snippet's own, and says whose it is", () => {
    const calls = graph.aten.map((node) => (node.name === "mm" ? { ...node, target: "triton_kernel_wrapper_functional" } : node));
    const own = { function: "scale", arguments: [], constants: {}, launch: {}, problem: null };
    const kernels = graph.kernels.map((kernel, place) => (place === 0 ? { ...kernel, kind: "extern" as const, own } : kernel));
    expect(draw({ ...graph, aten: calls, kernels }).nodes.find((node) => node.id === "mm")).toMatchObject({ label: "scale", detail: "your Triton kernel", kernels: [0] });
  });

  it("calls a node by the number that decisions know it by", () => {
    const twice = graph.aten.map((node) => (node.name === "exp" ? { ...node, name: "exp_2" } : node));
    expect(draw({ ...graph, aten: twice }).nodes.find((node) => node.id === "exp_2")?.label).toBe("exp_2");
    expect(draw(graph).nodes.find((node) => node.id === "exp")?.label).toBe("exp");
  });

  it("shortens targets without losing names", () => {
    const named = (target: string) => shortTarget({ ...graph.aten[3]!, op: "call_function", target });
    expect(named("aten.sum.dim_IntList")).toBe("sum");
    expect(named("torch.nn.functional.relu")).toBe("relu");
    expect(named("transpose")).toBe("transpose");
  });
});

/** `layers` equal layers of three kernels with three operations each, between one kernel before and one after. */
function layered(layers: number): Graph {
  const kernels: Kernel[] = [];
  const aten: FxNode[] = [{ ...operation, name: "x", op: "placeholder", args: [], module: null }];
  const add = (kind: string, module: string, layer: number): void => {
    const origins = [0, 1, 2].map((place) => `${kind}_${layer}_${place}`);
    for (const name of origins) aten.push({ ...operation, name, args: [aten.at(-1)!.name], module });
    const same = kernels.find((kernel) => kernel.name.startsWith(`${kind}_`));
    kernels.push({ ...graph.kernels[1]!, name: `${kind}_${layer}`, same_as: same?.name ?? null, origins, nodes: [], reads: [], writes: [] });
  };
  add("embed", "embed", 0);
  for (let layer = 0; layer < layers; layer += 1) for (const kind of ["norm", "attend", "feed"]) add(kind, `layers.${layer}.${kind}`, layer);
  add("head", "head", 0);
  aten.push({ ...operation, name: "output", op: "output", args: [aten.at(-1)!.name], module: null });
  return { ...graph, aten, kernels, loops: [], decisions: [], traffic: null };
}

describe("the map of a large graph", () => {
  const large = layered(24);

  it("draws equal layers once, and the one that is asked for; kernels are nodes until one is opened", () => {
    const map = draw(large);
    const [layers] = map.clusters.filter(({ kind }) => kind === "layers");
    expect(layers).toMatchObject({ count: 24, shown: 0, label: "layers.0" });
    expect(map.nodes.map((node) => node.id)).toEqual(["k0", "k1", "k2", "k3", "k73", "output"]);
    expect(map.nodes[1]).toMatchObject({ role: "group", members: ["norm_0_0", "norm_0_1", "norm_0_2"] });
    const other = draw(large, look([`${layers!.id}:7`, "k23"]));
    expect(other.clusters.find(({ kind }) => kind === "layers")).toMatchObject({ shown: 7, label: "layers.7" });
    expect(other.nodes.map((node) => node.id)).toContain("attend_7_1");
    expect(other.idOf.get("attend_3_1")).toBe("attend_7_1");
    expect(draw(large, look([`${layers!.id}:all`])).nodes).toHaveLength(75);
  });

  it("draws one of equal layers again once all were shown", () => {
    opened.value = "g/k2,h/r9:3";
    showLayer("g", "r1", "all");
    expect(hasAllLayers()).toBe(true);
    foldLayers();
    expect([hasAllLayers(), opened.value]).toEqual([false, "g/k2,h/r9:3"]);
    opened.value = "";
  });

  it("takes kernels that run the same operations for equal, whatever their code says of each other", () => {
    const told = { ...large, kernels: large.kernels.map((kernel) => ({ ...kernel, same_as: null })) };
    expect(draw(told).nodes).toEqual(draw(large).nodes);
  });

  it("frames kernels that run in one module, beside others", () => {
    const inModule = (node: FxNode): FxNode => ({ ...node, module: node.module?.replace("attend", "norm") ?? null });
    const map = draw({ ...large, aten: large.aten.map(inModule) });
    expect(map.clusters.filter(({ kind }) => kind === "module")).toMatchObject([{ label: "norm", title: "layers.0.norm", parent: "r1", members: ["k1", "k2"] }]);
  });

  it("draws no input of a layer that is not drawn, though the graph gives it back for a training step", () => {
    const weights = [2, 5].map((layer) => ({ ...large.aten[0]!, name: `weight_${layer}` }));
    const reads = (node: FxNode): FxNode => (node.name === "feed_2_0" ? { ...node, args: [...node.args, "weight_2"] } : node.name === "feed_5_0" ? { ...node, args: [...node.args, "weight_5"] } : node);
    const aten = [...weights, ...large.aten.map((node) => (node.op === "output" ? { ...node, args: [...node.args, "weight_2", "weight_5"] } : reads(node)))];
    expect(draw({ ...large, aten }).nodes.map(({ id }) => id)).toEqual(draw(large).nodes.map(({ id }) => id));
  });

  it("says how many equal layers there are where nothing else is drawn", async () => {
    // A second way from the input to the output runs beside the layers.
    const beside = Array.from({ length: 5 }, (_unused, place) => ({ ...operation, name: `beside_${place}`, args: [place ? `beside_${place - 1}` : "x"], module: null }));
    const [last] = large.aten.slice(-1);
    const map = draw({ ...large, aten: [...large.aten.slice(0, -1), ...beside, { ...last!, args: [...last!.args, "beside_4"] }] });
    const layout = fromGraphviz(map, (await instance()).renderJSON(toDot(map)) as unknown as GraphvizJson);
    const { id } = map.clusters.find(({ kind }) => kind === "layers")!;
    const [caption, box] = [layout.captions[id]!, layout.boxes[id]!];
    expect(overlap(caption, box)).toBeCloseTo(caption.width * caption.height);
    for (const { id: name, width, height } of map.nodes) {
      const { x, y } = layout.nodes[name]!;
      expect(overlap(caption, { x: x - width / 2, y: y - height / 2, width, height })).toBe(0);
    }
  });

  it("leads the way in and out of equal layers through the one that is drawn, and never back to its top", () => {
    const ways = draw(large, look(["r1:5"])).edges.map(({ from, to }) => `${from} ${to}`);
    expect(ways).toEqual(["k0 k16", "k16 k17", "k17 k18", "k18 k73", "k73 output"]);
  });

  it("draws a chain of thousands of operations in stretches before it has kernels, and in columns when it is opened", () => {
    const chain = Array.from({ length: 3000 }, (_unused, place) => ({ ...operation, name: `op${place}`, args: place ? [`op${place - 1}`] : [], module: null }));
    const bare = { ...graph, aten: chain, loops: [], kernels: [], decisions: [], traffic: null };
    const map = draw(bare);
    expect(map.nodes.length).toBeLessThan(COLLAPSE_ABOVE);
    expect(map.nodes.every((node) => node.role === "group")).toBe(true);
    const opened = draw(bare, look(map.nodes.map((node) => node.id)));
    expect(needsColumns(opened)).toBe(true);
    const layout = inColumns(opened);
    expect(Object.keys(layout.nodes)).toHaveLength(3000);
    expect(layout.width / layout.height).toBeGreaterThan(0.7);
    expect(layout.width / layout.height).toBeLessThan(3);
  });
});

describe("what costs most", () => {
  it("names the refusals that lasted, with most bytes first", () => {
    const refusals = costliestRefusals([graph]);
    expect(refusals.map(({ from, to }) => `${from} ${to}`)).toEqual(expect.arrayContaining(["mm mul", "div add", "mm add"]));
    expect(refusals.map(({ stake }) => stake)).toEqual(refusals.map(({ stake }) => stake).sort((one, other) => other - one));
  });

  it("names the graph as the report does, where there are several: their numbers of kernels are the same", () => {
    const graphs = [{ ...graph, name: "graph_0" }, { ...graph, name: "graph_0_backward" }, { ...graph, name: "graph_1" }];
    expect(new Set(costliestRefusals(graphs, 100).map(({ graph: of, where }) => of === where && where))).toEqual(new Set(graphs.map(({ name }) => name)));
    expect(costliestRefusals([graph]).every(({ where }) => where === "")).toBe(true);
  });

  it("has a row for each two kernels, with what decided, and the other pairs of their nodes in it", () => {
    const [last] = graph.refusals.slice(-1);
    const decisions = [...graph.decisions, { ...graph.decisions[4]!, a: "buf6", b: "buf0" }];
    const refusals = [{ ...last!, decisions: [...last!.decisions, decisions.length - 1] }];
    const [row, ...others] = costliestRefusals([{ ...graph, decisions, refusals }]);
    expect(others).toEqual([]);
    expect([row?.a, row?.b, row?.kernels]).toEqual(["buf0", "buf6", [0, 2]]);
    expect(row?.others.map(({ a, b }) => [a, b])).toEqual([["buf6", "buf0"]]);
  });

  it("names the kernel of each node, also where the later one is named first", () => {
    const decisions = graph.decisions.map((one) => ({ ...one, a: one.b, b: one.a }));
    const [row] = costliestRefusals([{ ...graph, decisions, refusals: graph.refusals.slice(-1) }]);
    expect([row?.a, row?.b, row?.kernels]).toEqual(["buf6", "buf0", [2, 0]]);
  });
});

describe("the search", () => {
  it("finds by name, operation, kernel and line", () => {
    const found = (query: string) => search([graph], "aten", query).map((hit) => hit.ref);
    expect(found("sum_1")).toEqual(["aten:graph0/sum_1"]);
    expect(found("K2")).toEqual(["kernel:graph0/1"]);
    expect(found("AMAX")).toContain("aten:graph0/amax");
    // What is called so comes before a kernel that is named after it.
    const kernels = graph.kernels.map((kernel) => ({ ...kernel, name: "fused_exp_relu" }));
    expect(search([{ ...graph, kernels }], "aten", "exp")[0]?.ref).toBe("aten:graph0/exp");
    const line = graph.aten.find((node) => node.name === "exp")!.lines[0]!;
    expect(found(`line ${line}`)).toContain("aten:graph0/exp");
    expect(search([graph], "aten", "of a line", `${"\n".repeat(line - 1)}# Of a line`).map((hit) => hit.ref)).toContain("aten:graph0/exp");
    expect(found("nothing of that name")).toEqual([]);
  });
});

describe("several graphs", () => {
  it("run in their order: backward graphs after the forward ones that a break joins, the last one first", () => {
    const named = (name: string, phase: Graph["phase"], partner: string | null = null): Graph => ({ ...graph, name, phase, partner });
    const graphs = [named("a", "forward", "a2"), named("a2", "backward", "a"), named("b", "forward", "b2"), named("b2", "backward", "b"), named("c", "inference")];
    const joins = { before: ["a"], after: ["b"] } as GraphBreak;
    const order = (breaks: GraphBreak[], options: Report["options"]) => inRunningOrder({ graphs, breaks, options }).map(({ name }) => name);
    expect(order([joins], { training: true })).toEqual(["a", "b", "b2", "a2", "c"]);
    expect(order([], { training: true })).toEqual(["a", "a2", "b", "b2", "c"]);
    // As they were made: the function runs `a2` itself before it goes on in `b`.
    expect(order([joins], {})).toEqual(["a", "a2", "b", "b2", "c"]);
  });
});

describe("the way to Graphviz and back", () => {
  it("writes no name of the report into the drawing", () => {
    const hostile = { ...graph, aten: graph.aten.map((node) => ({ ...node, target: `aten."];evil[.default` })) };
    expect(toDot(draw(hostile))).not.toContain("evil");
  });

  it("reads places, paths and boxes, with y downwards", () => {
    const map = draw(graph);
    const cluster = map.clusters.findIndex(({ id }) => id === "k1");
    const layout = fromGraphviz(map, {
      bb: "0,0,100,200",
      objects: [{ name: "n0", pos: "10,190" }, { name: `cluster_${cluster}`, bb: "5,20,95,120" }],
      edges: [{ id: "e0", pos: "e,10,20 10,100 10,80 10,60 10,30" }],
    });
    expect(layout.nodes[map.nodes[0]!.id]).toEqual({ x: 10, y: 10 });
    expect(layout.boxes).toEqual({ k1: { x: 5, y: 80, width: 90, height: 100 } });
    expect(layout.edges[0]).toMatchObject({ path: "M10.0,100.0 C10.0,120.0 10.0,140.0 10.0,170.0 L10.0,180.0"});
  });
});

describe("numbers beside lines", () => {
  const map = draw(graph);
  const places = map.nodes.map((_node, place) => ({ x: 100, y: 100 * place }));
  const layout = (stops: Point[]): Layout => ({
    width: 400,
    height: 100 * places.length,
    nodes: Object.fromEntries(map.nodes.map(({ id }, place) => [id, places[place]!])),
    edges: map.edges.map(() => ({ path: "", stops })),
    boxes: {},
    captions: {},
  });
  const boxOf = ({ x, y, text }: Label): Box => ({ x, y: y - 11, width: text.length * 7.2, height: 14 });

  it("stand over no node where the line has room elsewhere", () => {
    const [label] = placeLabels(map, layout([{ x: 100, y: 0 }, { x: 100, y: 50 }]), ["3.15 MB"]);
    expect(label?.y).toBeCloseTo(54);
  });

  it("do not cover each other, though the lines run beside each other", () => {
    const stops = [20, 40, 60].map((y) => ({ x: 300, y }));
    const labels = placeLabels(map, layout(stops), ["8.19 kB", "3.15 MB", null, "4.1 kB", "1.05 MB"]);
    const boxes = labels.flatMap((label) => (label ? [boxOf(label)] : []));
    expect(boxes).toHaveLength(4);
    boxes.forEach((box, place) => expect(boxes.slice(place + 1).map((other) => overlap(box, other))).toEqual(boxes.slice(place + 1).map(() => 0)));
  });
});

describe("several graphs in one picture", () => {
  it("have a break between them also where a function runs backward at it", () => {
    const layout = { width: 40, height: 40, nodes: {}, edges: [], boxes: {}, captions: {} } as unknown as Layout;
    const named = (name: string, phase: Graph["phase"], partner: string | null) => ({ graph: { ...graph, name, phase, partner }, map: draw(graph), layout });
    const drawn = [named("a", "forward", "a2"), named("a2", "backward", "a"), named("b", "inference", null)];
    const found = { before: ["a"], after: ["b"] } as GraphBreak;
    expect(stack({ ...exampleReport, breaks: [found] }, drawn).betweens.map((between) => between.found)).toEqual([null, found]);
  });

  it("have their names above them, and room for these", () => {
    const layout = { width: 40, height: 40, nodes: {}, edges: [], boxes: {}, captions: {} } as unknown as Layout;
    const drawn = ["graph_0", "graph_0_backward"].map((name) => ({ graph: { ...graph, name, function: "forward" }, map: draw(graph), layout }));
    const [first, second] = stack({ ...exampleReport, breaks: [] }, drawn).frames;
    expect([first?.title, second?.title]).toEqual(["forward", "forward"]);
    expect(first?.detail).toMatch(/^graph_0, 3 kernels/);
    expect(second?.detail).toMatch(/^graph_0_backward, 3 kernels/);
    expect(second!.width).toBeGreaterThan(first!.width - 1);
    expect(stack({ ...exampleReport, breaks: [] }, drawn.slice(0, 1)).frames[0]?.detail).not.toContain("graph_0");
  });
});

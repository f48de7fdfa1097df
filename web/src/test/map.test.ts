import { describe, expect, it } from "vitest";
import { fromGraphviz, toDot } from "../graph/dot";
import { COLLAPSE_ABOVE, mapOf, shortTarget } from "../graph/map";
import { linksOf } from "../links";
import type { Graph } from "../report";
import { exampleGraph as graph } from "./example";

const draw = (one: Graph, level: "aten" | "fx" = "aten", opened?: Set<number>) => mapOf(one, level, linksOf([one]), opened);

describe("the map of a graph", () => {
  it("puts each node into the box of the kernel that covers it", () => {
    const map = draw(graph);
    expect(map.boxes.get(0)).toEqual(["permute", "mm"]);
    expect(map.boxes.get(1)).toEqual(["mul", "amax", "sub", "exp", "sum_1", "div"]);
    expect(map.nodes.find((node) => node.id === "cos")).toMatchObject({ kernels: [], dead: true });
  });

  it("tells a value that stays in a kernel from one that goes through memory", () => {
    const kinds = new Map(draw(graph).edges.map((edge) => [`${edge.from} ${edge.to}`, edge.kind]));
    expect(kinds.get("mul amax")).toBe("register");
    expect(kinds.get("mm mul")).toBe("memory");
    expect(kinds.get("div output")).toBe("memory");
    expect(kinds.get("sub exp")).toBe("register");
    expect(kinds.get("arg0_1 cos")).toBe("plain");
  });

  it("draws the refusals that have bytes at stake", () => {
    expect(draw(graph).refusals).toMatchObject([
      { from: "mm", to: "mul" },
      { from: "div", to: "permute_1" },
      { from: "mm", to: "permute_1" },
    ]);
  });

  it("boxes a Dynamo node only where its line leaves no doubt", () => {
    const map = draw(graph, "fx");
    expect(map.boxes.get(1)).toContain("scaled");
    expect([...map.boxes.values()].flat()).not.toContain("relu_");
  });

  it("draws a large graph as kernels, until one is opened", () => {
    const [template] = graph.aten.slice(-1);
    const padding = Array.from({ length: COLLAPSE_ABOVE }, (_unused, index) => ({ ...template!, name: `pad${index}`, args: [], op: "placeholder" }));
    const large = { ...graph, aten: [...graph.aten, ...padding] };
    const closed = draw(large);
    expect(closed.collapsed).toBe(true);
    expect(closed.nodes.find((node) => node.id === "group1")).toMatchObject({ role: "group", detail: "6 operations" });
    expect(draw(large, "aten", new Set([1])).nodes.map((node) => node.id)).toContain("exp");
  });

  it("shortens targets without losing names", () => {
    const named = (target: string) => shortTarget({ ...graph.aten[3]!, op: "call_function", target });
    expect(named("aten.sum.dim_IntList")).toBe("sum");
    expect(named("torch.nn.functional.relu")).toBe("relu");
    expect(named("transpose")).toBe("transpose");
  });
});

describe("the way to Graphviz and back", () => {
  it("writes no name of the report into the drawing", () => {
    const hostile = { ...graph, aten: graph.aten.map((node) => ({ ...node, target: `aten."];evil[.default` })) };
    expect(toDot(draw(hostile))).not.toContain("evil");
  });

  it("reads places, paths and boxes, with y downwards", () => {
    const map = draw(graph);
    const layout = fromGraphviz(map, {
      bb: "0,0,100,200",
      objects: [{ name: "n0", pos: "10,190" }, { name: "cluster_1", bb: "5,20,95,120" }],
      edges: [{ id: "e0", pos: "e,10,20 10,100 10,80 10,60 10,30" }],
    });
    expect(layout.nodes[map.nodes[0]!.id]).toEqual({ x: 10, y: 10 });
    expect(layout.boxes).toEqual([{ place: 1, x: 5, y: 80, width: 90, height: 100 }]);
    expect(layout.edges[0]).toBe("M10.0,100.0 C10.0,120.0 10.0,140.0 10.0,170.0 L10.0,180.0");
  });
});

import { describe, expect, it } from "vitest";
import { graphNameOf, linksOf, loopsBehind, nameIn, numberIn, ref, refsOf } from "../links";
import { exampleGraph as graph, exampleReport } from "./example";

const EXTERN = 0;
const SOFTMAX = 1;
const RELU = 2;
const refs = refsOf(graph);
const links = linksOf([graph], exampleReport.peer?.kernels);
const everything = [
  ...Array.from({ length: 30 }, (_unused, index) => ref.line(index + 1)),
  ...graph.fx.map((node) => refs.fx(node.name)),
  ...graph.aten.map((node) => refs.aten(node.name)),
  ...graph.loops.map((loop) => refs.loop(loop.name)),
  ...graph.buffers.map((buffer) => refs.buffer(buffer.name)),
  ...graph.kernels.map((_kernel, place) => refs.kernel(place)),
  ...graph.kernels.flatMap((kernel, place) => kernel.lines.map((line) => refs.kernelLine(place, 0, line.line))),
  ...graph.decisions.map((_decision, index) => refs.decision(index)),
];

describe("the relation between the parts of a graph", () => {
  it("is symmetric, and nothing is its own partner", () => {
    for (const item of everything) {
      for (const partner of links.partners(item)) {
        expect(links.partners(partner), `${partner} ↔ ${item}`).toContain(item);
        expect(partner).not.toBe(item);
      }
    }
  });

  it("leads from a node to the kernels that compute it, and not to the one that it was fused into", () => {
    const [, softmax, relu] = graph.kernels;
    const node = softmax!.nodes[0]!;
    const kernels = graph.kernels.map((kernel) => (kernel === softmax ? { ...kernel, left_out: [node], origins: [], lines: [] } : kernel === relu ? { ...kernel, computes_again: [node] } : kernel));
    const found = linksOf([{ ...graph, kernels }]).partnersOfKind(refs.loop(node), "kernel");
    expect([...found]).toEqual([refs.kernel(RELU)]);
  });

  it("leads from a user line to its nodes, loops, kernel, kernel lines and decisions", () => {
    const partners = links.partners(ref.line(11));
    expect(partners).toContain(refs.fx("total"));
    expect(partners).toContain(refs.aten("sum_1"));
    expect(partners).toContain(refs.loop("buf4"));
    expect(partners).toContain(refs.buffer("buf4"));
    expect(partners).toContain(refs.kernel(SOFTMAX));
    expect(partners).toContain(refs.kernelLine(SOFTMAX, 0, 17));
    expect(partners).toContain(refs.kernelLine(SOFTMAX, 1, 8));
    expect(links.partnersOfKind(ref.line(11), "decision").size).toBeGreaterThan(0);
    expect(partners).not.toContain(refs.kernel(EXTERN));
  });

  it("does not tie the operations of one kernel to each other", () => {
    expect(links.partnersOfKind(refs.aten("mul"), "aten").size).toBe(0);
    expect(links.partners(refs.loop("buf1"))).not.toContain(refs.loop("buf4"));
  });

  it("tells two operations of one line apart", () => {
    expect(links.partners(refs.aten("relu"))).toContain(refs.kernel(RELU));
    expect(links.partners(refs.aten("relu"))).not.toContain(refs.kernel(SOFTMAX));
  });

  it("ties a kernel line of one operation to that one, of a loop made from two", () => {
    const line = links.partners(refs.kernelLine(SOFTMAX, 0, 18));
    expect(line).toContain(refs.aten("exp"));
    expect(line).not.toContain(refs.aten("sub"));
  });

  it("ties a decision to both of its sides, their kernels and their lines", () => {
    const index = graph.decisions.findIndex((decision) => decision.reason === "index.no_common_loops");
    const partners = links.partners(refs.decision(index));
    for (const expected of [refs.loop("buf5"), refs.loop("buf6"), refs.kernel(SOFTMAX), refs.kernel(RELU), refs.aten("relu"), ref.line(13)]) {
      expect(partners).toContain(expected);
    }
  });

  it("gives a dead node its line and its loop, and no kernel", () => {
    expect(links.partners(refs.aten("cos"))).toContain(ref.line(12));
    expect(links.partnersOfKind(refs.aten("cos"), "kernel").size).toBe(0);
  });

  it("keeps two calls of one function apart", () => {
    const [call] = graph.kernels;
    const twice = linksOf([{ ...graph, kernels: [call!, { ...call!, nodes: ["buf6"], origins: ["relu"], user_lines: [13] }] }]);
    expect(twice.numbersOf(refs.aten("mm"), "kernel")).toEqual([0]);
    expect(twice.numbersOf(refs.aten("relu"), "kernel")).toEqual([1]);
  });

  it("aligns the peer's kernels with ours by the operations that both cover", () => {
    expect(links.numbersOf(ref.peer(1), "kernel")).toEqual([SOFTMAX]);
    expect(links.numbersOf(refs.kernel(RELU), "peer")).toEqual([2]);
  });

  it("keeps equal names of two graphs apart, and joins both at the user's line", () => {
    const other = { ...graph, name: "graph_1" };
    const both = linksOf([graph, other], exampleReport.peer?.kernels);
    expect(both.numbersOf(ref.line(11), "kernel")).toEqual([SOFTMAX, SOFTMAX]);
    expect(both.numbersOf(ref.line(11), "kernel", "graph_1")).toEqual([SOFTMAX]);
    for (const partner of both.partners(refsOf(other).aten("mul"))) expect(graphNameOf(partner) ?? "graph_1").toBe("graph_1");
    expect(both.numbersOf(ref.peer(1), "kernel")).toEqual([SOFTMAX]);
  });

  it("reads a ref's parts back, of names with a slash too", () => {
    expect([graphNameOf(refs.kernel(3)), numberIn(refs.kernel(3))]).toEqual([graph.name, 3]);
    expect([graphNameOf(ref.line(7)), numberIn(ref.line(7))]).toEqual([null, 7]);
    expect(nameIn(refs.edge("a/b", "c"))).toBe("a/b c");
  });

  it("does not tie operations through a line that became very many", () => {
    const many = Array.from({ length: 200 }, (_unused, index) => ({ ...graph.aten[2]!, name: `mul_${index}`, lines: [3] }));
    const wide = linksOf([{ ...graph, aten: many, fx: [{ ...graph.fx[3]!, op: "call_function", name: "encoder", lines: [3] }] }]);
    expect(wide.partnersOfKind(refs.fx("encoder"), "aten").size).toBe(0);
    expect(wide.partners(ref.line(3))).toContain(refs.aten("mul_7"));
  });

  it("knows no partners of what it does not know", () => {
    expect(links.partners("aten:absent").size).toBe(0);
  });
});

describe("names in decisions", () => {
  it("may be of a loop, a kernel or a group", () => {
    expect(loopsBehind("buf3", graph)).toEqual(["buf3"]);
    expect(loopsBehind("softmax_rows", graph)).toEqual(["buf1", "buf2", "buf3", "buf4", "buf5"]);
    expect(loopsBehind("buf1+buf3", graph)).toEqual(["buf1", "buf3"]);
    expect(loopsBehind("fused_buf1_buf3", graph)).toEqual([]);
    expect(loopsBehind("nothing", graph)).toEqual([]);
  });
});

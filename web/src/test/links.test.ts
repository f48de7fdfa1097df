import { describe, expect, it } from "vitest";
import { linksOf, loopsBehind, ref } from "../links";
import { exampleGraph as graph, exampleReport } from "./example";

const EXTERN = 0;
const SOFTMAX = 1;
const RELU = 2;
const links = linksOf(graph, exampleReport.peer?.kernels);
const everything = [
  ...Array.from({ length: 30 }, (_unused, index) => ref.line(index + 1)),
  ...graph.fx.map((node) => ref.fx(node.name)),
  ...graph.aten.map((node) => ref.aten(node.name)),
  ...graph.loops.map((loop) => ref.loop(loop.name)),
  ...graph.buffers.map((buffer) => ref.buffer(buffer.name)),
  ...graph.kernels.map((_kernel, place) => ref.kernel(place)),
  ...graph.kernels.flatMap((kernel, place) => kernel.lines.map((line) => ref.kernelLine(place, 0, line.line))),
  ...graph.decisions.map((_decision, index) => ref.decision(index)),
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

  it("leads from a user line to its nodes, loops, kernel, kernel lines and decisions", () => {
    const partners = links.partners(ref.line(11));
    expect(partners).toContain(ref.fx("total"));
    expect(partners).toContain(ref.aten("sum_1"));
    expect(partners).toContain(ref.loop("buf4"));
    expect(partners).toContain(ref.buffer("buf4"));
    expect(partners).toContain(ref.kernel(SOFTMAX));
    expect(partners).toContain(ref.kernelLine(SOFTMAX, 0, 17));
    expect(partners).toContain(ref.kernelLine(SOFTMAX, 1, 8));
    expect(links.partnersOfKind(ref.line(11), "decision").length).toBeGreaterThan(0);
    expect(partners).not.toContain(ref.kernel(EXTERN));
  });

  it("does not tie the operations of one kernel to each other", () => {
    expect(links.partnersOfKind(ref.aten("mul"), "aten")).toEqual([]);
    expect(links.partners(ref.loop("buf1"))).not.toContain(ref.loop("buf4"));
  });

  it("tells two operations of one line apart", () => {
    expect(links.partners(ref.aten("relu"))).toContain(ref.kernel(RELU));
    expect(links.partners(ref.aten("relu"))).not.toContain(ref.kernel(SOFTMAX));
  });

  it("ties a kernel line of one operation to that one, of a loop made from two", () => {
    const line = links.partners(ref.kernelLine(SOFTMAX, 0, 18));
    expect(line).toContain(ref.aten("exp"));
    expect(line).not.toContain(ref.aten("sub"));
  });

  it("ties a decision to both of its sides, their kernels and their lines", () => {
    const index = graph.decisions.findIndex((decision) => decision.reason === "index.no_common_loops");
    const partners = links.partners(ref.decision(index));
    for (const expected of [ref.loop("buf5"), ref.loop("buf6"), ref.kernel(SOFTMAX), ref.kernel(RELU), ref.aten("relu"), ref.line(13)]) {
      expect(partners).toContain(expected);
    }
  });

  it("gives a dead node its line and its loop, and no kernel", () => {
    expect(links.partners(ref.aten("cos"))).toContain(ref.line(12));
    expect(links.partnersOfKind(ref.aten("cos"), "kernel")).toEqual([]);
  });

  it("keeps two calls of one function apart", () => {
    const [call] = graph.kernels;
    const twice = linksOf({ ...graph, kernels: [call!, { ...call!, nodes: ["buf6"], origins: ["relu"], user_lines: [13] }] });
    expect(twice.numbersOf(ref.aten("mm"), "kernel")).toEqual([0]);
    expect(twice.numbersOf(ref.aten("relu"), "kernel")).toEqual([1]);
  });

  it("aligns the peer's kernels with ours by the operations that both cover", () => {
    expect(links.numbersOf(ref.peer(1), "kernel")).toEqual([SOFTMAX]);
    expect(links.numbersOf(ref.kernel(RELU), "peer")).toEqual([2]);
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

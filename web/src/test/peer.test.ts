import { describe, expect, it } from "vitest";
import { Differences } from "../components/map/Differences";
import { kindInWords } from "../components/detail/kernelWords";
import { linksOf, ref, refsOf } from "../links";
import type { AlignedKernels } from "../report";
import { exampleGraph as graph, exampleReport } from "./example";
import { textOf } from "./textOf";

const peer = exampleReport.peer!;
const merged: AlignedKernels = {
  graph: graph.name, relation: "merged", nodes: ["mul", "add"], ours: [1, 2], theirs: [1], sentence: "TorchInductor computes K2 and K3 in one kernel.",
  because: "Ours keeps div and relu apart: index order.", decision: 0, pair: null, refusal: "", count: 2,
};

describe("the peer beside ours", () => {
  it("tells equal differences once, with why, and counts what is alike", () => {
    const told = textOf(Differences({ peer: { ...peer, alignment: [merged, { ...merged, count: 0 }, ...peer.alignment.slice(1)] } }));
    expect(told).toContain("1 difference, 2 kernels alike");
    expect(told).toContain("2 times: TorchInductor computes K2 and K3 in one kernel.");
    expect(told).toContain("index order");
  });

  it("says what a kernel is by its decoded name", () => {
    expect(kindInWords(peer.kernels[2]!, null)).toBe("pointwise of add, relu");
  });

  it("joins a line of its source to our operations and the user's line", () => {
    const kernel = { ...peer.kernels[1]!, lines: [{ line: 4, nodes: ["exp"], user_lines: [10] }] };
    const links = linksOf([graph], [kernel]);
    expect([...links.partners(ref.peerLine(0, 4))].sort()).toEqual([refsOf(graph).aten("exp"), ref.line(10), ref.peer(0)].sort());
  });
});

import { describe, expect, it } from "vitest";
import { Errors } from "../components/detail/Errors";
import { Timing } from "../components/detail/Timing";
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
    const told = textOf(Differences({ graphs: exampleReport.graphs, peer: { ...peer, alignment: [merged, { ...merged, count: 0 }, ...peer.alignment.slice(1)] } }));
    expect(told).toContain("1 difference, 2 kernels alike");
    expect(told).toContain("2 times: TorchInductor computes K2 and K3 in one kernel.");
    expect(told).toContain("index order");
  });

  it("says of everybody who was asked how long, how far off, or why not", () => {
    const row = { name: "aot_eager", median_ms: null, compile_s: 0.6, max_error: 3e-6, failure: "aot_eager ends the process: Aborted." };
    const told = textOf(Timing({ report: { ...exampleReport, peer: { ...peer, contestants: [row] } } }));
    expect(told).toContain("captured, not compiled (aot_eager)");
    expect(told).toContain("3.0e-6");
    expect(told).toContain("ends the process: Aborted.");
  });

  it("says how far everybody is from float64, and who strays", () => {
    const errors = { largest: 2.4e-7, mean: 1.9e-8, largest_ulp: 1.6, mean_ulp: 0.31 };
    const of = [{ contestant: "peer", errors, problem: null }, { contestant: "tvm", errors: null, problem: "has 8 of 8 elements that are NaN" }];
    const call = { entry: "f", output: "the result", seed: 1, dtype: "float32", elements: 8, of };
    const told = textOf(Errors({ report: { ...exampleReport, graphs: [{ ...graph, errors: [] }], peer: { ...peer, errors: [call], seeds: "Errors are of 2 seeds." } } }));
    for (const words of ["the result of f", "TorchInductor", "2.4e-7", "1.6", "It has 8 of 8 elements that are NaN.", "2 seeds"]) expect(told).toContain(words);
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

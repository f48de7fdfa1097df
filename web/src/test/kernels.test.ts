import { describe, expect, it } from "vitest";
import { KernelList } from "../components/detail/KernelMenu";
import { DisturbedTimes } from "../components/detail/Side";
import type { Graph, Kernel } from "../report";
import { exampleReport } from "./example";
import { textOf } from "./textOf";

const graph: Graph = exampleReport.graphs[0]!;
const kernel: Kernel = { ...graph.kernels.find((one) => one.kind !== "extern")!, same_as: null };
const sentence = "They add up to 3.1 times the time of their call.";

/** The text of the list's rows, one after the other. */
function rowsOf(kernels: Kernel[]): string[] {
  const told = textOf(KernelList({ kernels, selected: 0, isPeer: true }));
  const starts = kernels.map((one) => told.indexOf(one.name));
  return starts.map((start, place) => told.slice(start, starts[place + 1]));
}

describe("the list of kernels", () => {
  it("tells how often a kernel of equal layers comes, at the first of them", () => {
    const layers = Array.from({ length: 12 }, (_, place) => ({ ...kernel, name: `layer_${place}.`, same_as: place ? "layer_0." : null }));
    const rows = rowsOf([...layers, { ...kernel, name: "head." }]);
    expect(rows[0]).toContain("12 times");
    for (const row of rows.slice(1, 12)) {
      expect(row).toContain("same code");
      expect(row).not.toContain("times");
    }
    expect(rows[12]).not.toMatch(/times|same code/);
  });

  it("counts each kernel's own repeats", () => {
    const rows = rowsOf([
      { ...kernel, name: "first." },
      { ...kernel, name: "second." },
      { ...kernel, name: "third.", same_as: "second." },
    ]);
    expect(rows[0]).not.toContain("times");
    expect(rows[1]).toContain("2 times");
  });

  it("keeps disturbed times, and has no bandwidth where none was computed of them", () => {
    const disturbed = { ...kernel, measured_us: 123.4, gb_per_s: null, percent_of_peak: null };
    const told = textOf(KernelList({ kernels: [disturbed], selected: 0, isPeer: true }));
    expect(told).toContain("123");
    expect(told).not.toContain("GB/s");
    expect(textOf(KernelList({ kernels: [{ ...disturbed, gb_per_s: 50 }], selected: 0, isPeer: true }))).toContain("GB/s");
  });
});

describe("disturbed times", () => {
  it("are said not to be relied on, and why", () => {
    expect(textOf(DisturbedTimes({ graph: { ...graph, disturbed: sentence } }))).toBe(
      `Measured times are not reliable. ${sentence}`,
    );
  });

  it("are not spoken of where the times add up", () => {
    expect(textOf(DisturbedTimes({ graph: { ...graph, disturbed: null } }))).toBe("");
    expect(textOf(DisturbedTimes({ graph: undefined }))).toBe("");
  });
});

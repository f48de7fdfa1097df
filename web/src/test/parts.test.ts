import { describe, expect, it } from "vitest";
import { begunAgain, withParts } from "../parts";
import type { Graph, Report } from "../report";
import { exampleReport } from "./example";

const empty: Report = { ...exampleReport, graphs: [], stages: [] };

/** Every part of a graph, as the server sends one that is new. */
function partsOf(graph: Graph, place: number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(graph).map(([name, value]) => [`/graphs/${place}/${name}`, value]));
}

describe("a report that grows", () => {
  it("has what was sent of it, in whatever order, and leaves the one before as it was", () => {
    const [graph] = exampleReport.graphs;
    if (!graph) throw new Error("the example has a graph");
    const next = withParts(empty, { ...partsOf(graph, 0), "/graphs": 1, "/stages": exampleReport.stages });
    expect(next.graphs).toEqual([graph]);
    expect(next.stages).toEqual(exampleReport.stages);
    expect(empty.graphs).toEqual([]);
  });

  it("keeps what did not change as the same thing", () => {
    const next = withParts(exampleReport, { "/graphs/0/wrapper": "new" });
    expect(next.graphs[0]?.wrapper).toBe("new");
    expect(next.graphs[0]?.kernels).toBe(exampleReport.graphs[0]?.kernels);
    expect(next.summary).toBe(exampleReport.summary);
  });

  it("loses graphs that are there no more", () => {
    expect(withParts(exampleReport, { "/graphs": 0 }).graphs).toEqual([]);
  });

  it("begins again with nothing of the attempt before", () => {
    const again = begunAgain(exampleReport);
    expect([again.graphs, again.stages, again.timing]).toEqual([[], [], null]);
    expect(again.source).toBe(exampleReport.source);
  });
});

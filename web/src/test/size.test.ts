import { expect, it } from "vitest";
import { mapOf } from "../graph/map";
import { COSTLIEST, costliestRefusals } from "../graph/refusals";
import { linksOf } from "../links";
import type { Graph } from "../report";
import { exampleGraph } from "./example";

const OPERATIONS = 1500;
const PER_KERNEL = 8;
const DECISIONS = 4000;
/** Ten times what it takes a processor: the limit is there to catch work that grows with the square. */
const PATIENCE_MS = 3000;

declare const process: { cpuUsage(): { user: number; system: number } };

/** What this process has had of a processor: on a busy machine far less than has passed. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function largeGraph(): Graph {
  const [decision] = exampleGraph.decisions;
  const node = exampleGraph.aten.find((one) => one.name === "mul")!;
  const loop = exampleGraph.loops.find((one) => one.name === "buf1")!;
  const kernel = exampleGraph.kernels[1]!;
  const numbers = Array.from({ length: OPERATIONS }, (_unused, index) => index);
  return {
    ...exampleGraph,
    aten: numbers.map((index) => ({ ...node, name: `op${index}`, args: index ? [`op${index - 1}`] : [], lines: [index % 300] })),
    loops: numbers.map((index) => ({ ...loop, name: `buf${index}`, origins: [`op${index}`], lines: [index % 300], reads: [] })),
    buffers: numbers.map((index) => ({ ...exampleGraph.buffers[3]!, name: `buf${index}` })),
    kernels: numbers
      .filter((index) => index % PER_KERNEL === 0)
      .map((index) => ({ ...kernel, name: `kernel${index}`, nodes: numbers.slice(index, index + PER_KERNEL).map((one) => `buf${one}`), origins: [], lines: [], also: [] })),
    traffic: {
      ...exampleGraph.traffic!,
      edges: numbers.slice(1).map((index) => ({ ...exampleGraph.traffic!.edges[3]!, tensor: `buf${index - 1}`, producer: `buf${index - 1}`, consumer: `buf${index}` })),
    },
    decisions: Array.from({ length: DECISIONS }, (_unused, index) => ({
      ...decision!,
      a: `buf${index % OPERATIONS}`,
      b: `buf${(index * 7 + 1) % OPERATIONS}`,
      verdict: "refused" as const,
      score: null,
      shared: `buf${index % OPERATIONS}`,
      shared_bytes: 1024,
      numbers: {},
    })),
    refusals: Array.from({ length: DECISIONS }, (_unused, index) => {
      const place = index % (OPERATIONS / PER_KERNEL - 1);
      return { kernels: [Math.floor(place), Math.floor(place) + 1] as [number, number], decisions: [index], bytes: index };
    }),
  };
}

it("relates and maps a graph of 1,500 operations without a pause that a person minds", () => {
  const graph = largeGraph();
  const start = processorMs();
  const map = mapOf(graph, { level: "aten", showViews: false, opened: new Set(["r0:all"]) }, linksOf([graph]));
  expect(processorMs() - start).toBeLessThan(PATIENCE_MS);
  expect(map.nodes.length).toBe(Math.ceil(OPERATIONS / PER_KERNEL));
  expect(map.edges.every((edge) => edge.ref !== undefined)).toBe(true);
  expect(costliestRefusals([graph])).toHaveLength(COSTLIEST);
});

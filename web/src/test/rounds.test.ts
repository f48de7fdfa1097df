import { expect, it } from "vitest";
import { lastRound, unitsAfter } from "../rounds";
import { exampleGraph as graph } from "./example";

const sorted = (groups: string[][]): string[][] => groups.map((group) => [...group].sort()).sort();

it("begins with each node alone and ends with the kernels", () => {
  expect(unitsAfter(graph, 0)).toEqual(graph.loops.filter((loop) => !loop.dead).map((loop) => [loop.name]));
  expect(sorted(unitsAfter(graph, lastRound(graph)))).toEqual(sorted(graph.kernels.map((kernel) => kernel.nodes)));
});

it("has as many units after a round as the round says", () => {
  for (const round of graph.rounds) expect(unitsAfter(graph, round.number)).toHaveLength(round.units);
});

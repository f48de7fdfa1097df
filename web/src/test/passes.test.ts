import { expect, it } from "vitest";
import { lineDiff } from "../components/why/lineDiff";
import { type Pass, passesOf } from "../components/passes/passes";
import { kindOf, nameIn } from "../links";
import { exampleGraph } from "./example";

const graph = { ...exampleGraph, rewrites: [] };

const passes = passesOf(graph);
const named = (id: string): Pass => passes.find((pass) => pass.id === id)!;
const texts = (lines: Pass["before"]): string[] => lines.map((line) => line.text);
const changed = (pass: Pass) => lineDiff(texts(pass.before).join("\n"), texts(pass.after).join("\n")).filter((line) => line.kind !== "same");

it("has a pass for operators, for loops, and for each round that fused", () => {
  expect(passes.map((pass) => pass.id)).toEqual(["operators", "loops", ...graph.rounds.filter((round) => round.fused.length > 0).map((round) => `round-${round.number}`)]);
});

it("tells of operators only those that were captured as others", () => {
  const lines = changed(named("operators")).map((line) => line.text);
  expect(lines.some((line) => line.startsWith("matmul "))).toBe(true);
  expect(lines.some((line) => line.startsWith("mm "))).toBe(true);
  expect(lines.some((line) => line.startsWith("amax ") || line.startsWith("exp "))).toBe(false);
});

it("takes an input that is captured for the same one among the operators, which has no line", () => {
  const aten = graph.aten.map((node) => (node.op === "placeholder" ? { ...node, lines: [] } : node));
  const [operators] = passesOf({ ...graph, aten });
  expect(graph.fx.some(({ op, lines }) => op === "placeholder" && lines.length > 0)).toBe(true);
  expect(changed(operators!).filter(({ text }) => text.startsWith("input "))).toEqual([]);
});

it("begins each round where the one before ended, and ends with the kernels", () => {
  const rounds = passes.filter((pass) => pass.id.startsWith("round-"));
  rounds.slice(1).forEach((round, place) => expect(round.before).toEqual(rounds[place]!.after));
  const kernels = graph.kernels.map((kernel) => [...kernel.nodes].sort().join(" + "));
  expect(texts(rounds.at(-1)!.after).map((line) => line.split(": ")[0]!.split(" + ").sort().join(" + ")).sort()).toEqual(kernels.sort());
});

it("takes away as many units in a round as it fused pairs", () => {
  for (const round of graph.rounds) {
    if (round.fused.length === 0) continue;
    const { before, after } = named(`round-${round.number}`);
    expect(before.length - after.length).toBe(round.fused.length);
    expect(after).toHaveLength(round.units);
  }
});

it("names a thing of the graph on every line", () => {
  const known = { fx: graph.fx, aten: graph.aten, loop: graph.loops } as Record<string, { name: string }[]>;
  for (const { before, after } of passes) {
    for (const { ref } of [...before, ...after]) expect(known[kindOf(ref)]!.some((one) => one.name === nameIn(ref))).toBe(true);
  }
});

it("has nothing to tell before there are two sides", () => {
  expect(passesOf({ ...graph, aten: [], loops: [], rounds: [] })).toEqual([]);
});

it("works out the lines of the rounds that are looked at, and of no other", () => {
  let looks = 0;
  const loops = graph.loops;
  const counted = Object.defineProperty({ ...graph }, "loops", { get: () => ((looks += 1), loops) });
  const found = passesOf(counted);
  const before = looks;
  expect(found.at(-1)!.after.length).toBeGreaterThan(0);
  expect(looks).toBeGreaterThan(before);
  expect(before).toBeLessThan(4);
});

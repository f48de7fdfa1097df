import { describe, expect, it } from "vitest";
import type { Answer, Comparison, Figure } from "../api";
import { bytesOf, decisionOf, historyOf, metAs, ofGraph, whyNotForce } from "../components/why/answers";
import { besideFigure, changeOf, kernelsInWords, told } from "../components/why/changes";
import { hunks, lineDiff } from "../components/why/lineDiff";
import { isProgram, partsOf } from "../components/why/page";
import { Numbers } from "../components/why/Numbers";
import { placeCard, type Rect } from "../components/why/place";
import { exampleReport } from "./example";
import { textOf } from "./textOf";

const graph = exampleReport.graphs[0]!;
const answer = (more: Partial<Answer> = {}): Answer => ({
  graph: graph.name, a: "buf5", b: "buf6", verdict: "refused", reason: "index.no_common_loops", message: "", would_fuse_if: "", kernels: [], lines: [], decisions: [], ...more,
});

describe("the place of the card", () => {
  const map: Rect = { left: 340, top: 130, right: 1440, bottom: 860 };
  const size = { width: 500, height: 420 };
  const overlaps = (placed: { left: number; top: number }, anchor: Rect): boolean =>
    placed.left < anchor.right && placed.left + size.width > anchor.left && placed.top < anchor.bottom && placed.top + size.height > anchor.top;

  it("is beside what it speaks of, wherever that is", () => {
    const window: Rect = { left: 8, top: 60, right: 1432, bottom: 892 };
    for (let left = 340; left < 1400; left += 50) {
      for (let top = 130; top < 850; top += 50) {
        const anchor = { left, top, right: left + 60, bottom: top + 80 };
        const placed = placeCard(anchor, size, map, window);
        expect(overlaps(placed, anchor)).toBe(false);
        expect(placed.left).toBeGreaterThanOrEqual(window.left);
        expect(placed.left + size.width).toBeLessThanOrEqual(window.right);
      }
    }
  });

  it("stays on its side while that fits", () => {
    const anchor = { left: 860, top: 300, right: 900, bottom: 340 };
    expect(placeCard(anchor, size, map, map).side).toBe("right");
    expect(placeCard(anchor, size, map, map, "left").side).toBe("left");
  });

  it("is a corner of the map where nothing is known of what it speaks of", () => {
    expect(placeCard(null, size, map, map)).toMatchObject({ side: null, top: 144 });
  });
});

describe("what is known of two nodes", () => {
  it("puts all rounds in order and rests on the decision of the answer's reason", () => {
    const history = historyOf(answer(), graph);
    expect(history.map((decision) => decision.reason)).toEqual(["index.no_common_loops"]);
    expect(decisionOf(answer(), history)?.shared).toBe("arg0_1");
    expect(historyOf(answer({ decisions: history }), graph)).toHaveLength(1);
  });

  it("says as what the two were looked at, where that is under other names", () => {
    const [decision] = historyOf(answer(), graph);
    expect(metAs(decision!, answer())).toBeNull();
    expect(metAs(decision!, answer({ a: decision!.b, b: decision!.a }))).toBeNull();
    expect(metAs({ ...decision!, round: 9, a: "argmax", b: "sub" }, answer())).toBe("In round 9 they were looked at as `argmax` and `sub`, with what each had been fused with.");
  });

  it("prefers the graph that was asked about, and knows what each side reads", () => {
    const other = answer({ graph: "elsewhere" });
    expect(ofGraph([other, answer()], graph.name)).toEqual([answer()]);
    expect(ofGraph([other], graph.name)).toEqual([other]);
    const reads = graph.loops.find((loop) => loop.name === "buf6")?.reads.find((access) => access.buffer === "arg0_1");
    expect(bytesOf("buf6", "reads", "arg0_1", graph)).toBe(reads?.bytes);
    const fused = graph.loops.find(({ name }) => name === "buf1")?.reads.find(({ buffer }) => buffer === "buf0");
    expect(bytesOf("buf5", "reads", "buf0", graph)).toBe(fused?.bytes);
  });

  it("says why an input cannot be fused with", () => {
    expect(whyNotForce({ a: "arg0_1", b: "buf6", reason: "policy.no_loop" }, graph)).toContain("is an input of the graph");
    expect(whyNotForce(answer(), graph)).toBeNull();
  });
});

describe("the numbers of a decision", () => {
  it("say that predicted times have the gaps which the time of a kernel leaves out", () => {
    const decision = { ...graph.decisions[0]!, score: { category: "vertical", bytes_saved: 8, distance: 1, fused_us: 12.353, unfused_us: 21.1 } };
    const told = textOf(Numbers({ answer: answer(), decision, graph, report: exampleReport }));
    expect(told).toContain("one kernel 12.4 µs, two kernels 21.1 µs, with launch gaps");
  });
});

describe("a change in words", () => {
  it("counts kernels in the number that they have", () => {
    const [one, two] = [[{}], [{}, {}]] as unknown as [Comparison["kernels"], Comparison["kernels"]];
    expect(kernelsInWords({ kernels: one, unchanged: [] })).toBe("1 group of kernels differs, 0 kernels have the same nodes");
    expect(kernelsInWords({ kernels: two, unchanged: ["a"] as unknown as Comparison["unchanged"] })).toBe("2 groups of kernels differ, 1 kernel has the same nodes");
  });

  const figure = (name: string, more: Partial<Figure>): Figure => ({ name, kind: "counted", unit: "", device: "", before: 2, after: 1, change: -1, ratio: 0.5, is_noise: false, ...more });
  const beside = (time: Partial<Figure>): Comparison => ({
    before: "a", after: "b", is_same_source: true, differences: [], kernels: [], unchanged: [], options: [], is_wrong: false, verdict: "",
    figures: [
      figure("generated kernels", {}),
      figure("library calls", { before: 1, after: 1, change: 0, ratio: 1 }),
      figure("bytes moved", { unit: "bytes", before: 8.4e6, after: 4.2e6, change: -4.2e6 }),
      figure("compiled", { kind: "measured", unit: "ms", before: 0.31, after: 0.22, change: -0.09, ratio: 0.71, ...time }),
    ],
  });

  it("counts launches as the answer bar does, and keeps measurement and count apart", () => {
    expect(told(beside({})).map(({ text }) => text)).toEqual(["3 kernels → 2", "310 µs → 220 µs (measured)", "−4.2 MB"]);
    expect(besideFigure(beside({}), "kernels")).toMatchObject({ before: 3, after: 2, change: -1 });
  });

  it("compares no predictions of different work", () => {
    const predicted = (more: Partial<Figure>): Figure => figure("generated kernels in a row", { kind: "predicted", unit: "us", before: 5, after: 2, change: -3, ...more });
    const words = (one: Figure): string => told({ ...beside({}), figures: [one] }).map(({ text }) => text).join();
    expect(words(predicted({}))).toContain("(predicted)");
    expect(words(predicted({ change: null, ratio: null }))).not.toContain("predicted");
  });

  it("calls noise by its name", () => {
    expect(told(beside({ is_noise: true })).map(({ text }) => text)).toContain("no measurable difference in time");
    expect(changeOf(figure("x", { is_noise: true }))).toBe("no measurable difference");
    expect(changeOf(figure("x", { change: 0 }))).toBe("the same");
  });
});

describe("a diff of lines", () => {
  const shown = (before: string, after: string): string => lineDiff(before, after).map(({ kind, text }) => `${{ same: " ", removed: "-", added: "+" }[kind]}${text}`).join("|");

  it("tells what was removed, added and kept", () => {
    expect(shown("a\nb\nc\nd", "a\nx\nc\ny\nd")).toBe(" a|-b|+x| c|+y| d");
    expect(shown("a", "a")).toBe(" a");
    expect(shown("a\nb", "c\nd\ne")).toBe("-a|-b|+c|+d|+e");
  });

  it("gives both texts back, whatever they are", () => {
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    for (let turn = 0; turn < 60; turn += 1) {
      const [one, two] = [0, 1].map(() => Array.from({ length: 1 + random(12) }, () => "abc"[random(3)]).join("\n")) as [string, string];
      const lines = lineDiff(one, two);
      expect(lines.filter((line) => line.kind !== "added").map((line) => line.text).join("\n")).toBe(one);
      expect(lines.filter((line) => line.kind !== "removed").map((line) => line.text).join("\n")).toBe(two);
      expect(lines.flatMap((line) => line.after ?? [])).toEqual(two.split("\n").map((_, place) => place + 1));
    }
  });

  it("finds what is kept among any number of lines that are not", () => {
    const text = (name: string): string => [...Array.from({ length: 3000 }, (_, place) => (place === 1500 ? "kept" : `${name} ${place}`))].join("\n");
    const kept = lineDiff(text("before"), text("after")).filter((line) => line.kind === "same");
    expect(kept).toEqual([{ kind: "same", text: "kept", before: 1501, after: 1501 }]);
  });

  it("leaves out long stretches that are equal", () => {
    const long = Array.from({ length: 40 }, (_, place) => `line ${place}`).join("\n");
    expect(hunks(lineDiff(long, long.replace("line 20", "other"))).map((hunk) => (hunk.kind === "skipped" ? hunk.count : hunk.lines.length))).toEqual([17, 8, 16]);
  });
});

describe("a reason's page", () => {
  it("comes apart into headings, text and code", () => {
    const parts = partsOf("# index.reversed\n\nSaid\nso.\n\n## Example\n\n```python\nimport torch\n# not a heading\ndef f(): ...\n```\n\n## What to do\n\nFlip it.\n");
    expect(parts.map((part) => part.kind)).toEqual(["text", "heading", "code", "heading", "text"]);
    expect(parts[2]).toEqual({ kind: "code", language: "python", source: "import torch\n# not a heading\ndef f(): ..." });
    expect(parts.filter(isProgram)).toHaveLength(1);
  });
});

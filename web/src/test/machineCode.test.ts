import { describe, expect, it } from "vitest";
import { accessGroups, codeFacts, mixOf, originsOfLevel, originsOfSource } from "../components/detail/codeLevels";
import { choicesFor, targetOf } from "../machineCode";
import type { Kernel, MachineCode } from "../report";
import { exampleGraph } from "./example";

const [product, softmax] = exampleGraph.kernels as [Kernel, Kernel];
const lines = softmax.also.find((one) => one.language === "triton")?.lines ?? [];

const code: MachineCode = {
  kernel: "softmax_rows",
  language: "triton",
  target: "sm_90",
  levels: [
    { name: "ptx", text: "a\nb\nc\n", lines: [[1, 5], [2, 7]], all_lines: 3, cut: null },
    { name: "sass", text: "a\nb\nc\nd\n", lines: [[1, 5], [2, 7], [3, 3], [4, 7]], all_lines: 4, cut: null },
  ],
  threads: 128,
  registers: 64,
  spills: 0,
  shared_bytes: 0,
  occupancy: { warps: 32, most_warps: 64, percent: 50, programs: 8, limits: [{ by: "warps", programs: 16 }, { by: "registers", programs: 8 }], limited_by: ["registers"], source: "by the rules" },
  instructions: { memory: 2, arithmetic: 6, matrix: 0, control: 2 },
  accesses: [
    { line: 1, source_line: 5, instruction: "LDG.E.128", space: "global", is_store: false, bits: 128 },
    { line: 2, source_line: 7, instruction: "LDG.E.128", space: "global", is_store: false, bits: 128 },
    { line: 4, source_line: 7, instruction: "STG.E.64", space: "global", is_store: true, bits: 64 },
    { line: 3, source_line: null, instruction: "LDSM.16.M88.4", space: "shared", is_store: false, bits: null },
  ],
  matrix_instructions: [],
  loops: [],
  remarks: [],
  passes: [],
  notes: [],
};
const refOf = (line: number): string => `code:g/1:1:${line}`;

describe("what a kernel can be compiled for", () => {
  it("is this machine for its C++, and GPUs for its Triton", () => {
    expect(choicesFor(softmax, "sm_90").map(({ target }) => target)).toEqual(["host", "sm_80", "sm_90", "sm_100", "gfx942"]);
    expect(choicesFor({ ...softmax, kind: "triton", also: [] }, "sm_89").map(({ target }) => target)).toEqual(["sm_89", "sm_80", "sm_90", "sm_100", "gfx942"]);
    expect(choicesFor(product, "sm_90")).toEqual([]);
  });

  it("is what the reader chose where the kernel has it, else what ran", () => {
    expect(targetOf(softmax, "sm_90", "gfx942")).toBe("gfx942");
    expect(targetOf(softmax, "sm_90", null)).toBe("host");
    expect(targetOf({ ...softmax, kind: "triton", also: [] }, "sm_90", "host")).toBe("sm_90");
    expect(targetOf(product, "sm_90", "sm_80")).toBeNull();
  });
});

describe("the lines of a level", () => {
  it("have the ref of the kernel's line that they come from, and the reader's lines behind it", () => {
    const [, sass] = code.levels;
    const origins = originsOfLevel(sass as MachineCode["levels"][number], lines, refOf);
    expect(origins.get(2)).toEqual({ ref: refOf(7), userLines: [9, 10], from: 7 });
    expect(origins.get(4)?.ref).toBe(origins.get(2)?.ref);
    expect(origins.get(3)).toEqual({ ref: refOf(3), userLines: [], from: 3 });
  });

  it("lead back to every line of the source that some level knows", () => {
    const origins = originsOfSource(code, lines, refOf);
    expect([...origins.keys()].sort((one, other) => one - other)).toEqual([3, 5, 6, 7, 8, 9]);
    expect(origins.get(7)).toEqual({ ref: refOf(7), userLines: [9, 10] });
  });
});

describe("what the instructions say", () => {
  it("is told in one line, and what limits occupancy with it", () => {
    const told = codeFacts(code).map(({ value, name }) => `${value} ${name}`);
    expect(told).toEqual(["64 registers", "nothing spilled", "0 B shared memory", "50 % occupancy, limited by registers", "not on matrix units", "128-bit loads", "64-bit stores"]);
  });

  it("is summed by what they do and by what they are", () => {
    expect(mixOf(code).map(({ kind, share }) => [kind, share])).toEqual([["arithmetic", 0.6], ["memory", 0.2], ["control", 0.2]]);
    expect(accessGroups(code).map(({ instruction, count, sourceLines }) => [instruction, count, sourceLines])).toEqual([
      ["LDG.E.128", 2, [5, 7]],
      ["STG.E.64", 1, [7]],
      ["LDSM.16.M88.4", 1, []],
    ]);
  });
});

import { describe, expect, it } from "vitest";
import type { Claim, Question } from "../api";
import { costliestRefusals } from "../graph/refusals";
import { differsHere, givenAwayBy, isRight, questionIn, shownValue, withoutKernels } from "../questions";
import { exampleReport } from "./example";

const asked: Question = { text: "How many?", kind: "number", unit: "kernels", choices: [], answer: "summary.kernels" };
const claim = (text: string): Claim => ({ text, kind: "report", path: "summary.kernels" });
const found = (value: number) => ({ path: "summary.kernels", value, problem: null });

describe("questions in the address", () => {
  it("come back as they were sent", () => {
    expect(questionIn(JSON.stringify(asked))).toEqual(asked);
  });
  it("are none where a part is missing, unknown or too long", () => {
    for (const wrong of ["", "7", "{}", JSON.stringify({ ...asked, kind: "riddle" }), JSON.stringify({ ...asked, text: "x".repeat(401) }), JSON.stringify({ ...asked, choices: [null] })]) {
      expect(questionIn(wrong)).toBeNull();
    }
  });
});

describe("what gives an answer away", () => {
  it("is hidden, and nothing else is", () => {
    expect(["graphs | count", "breaks | each line"].map(givenAwayBy)).toEqual(["all", "all"]);
    const aboutKernels = ["summary.kernels", "graphs[0].kernels | count", "graphs[0].decisions | where verdict = fused | count", "graphs[0].refusals | count", "graphs[0].removed | where kind = dead | each lines"];
    expect(new Set(aboutKernels.map(givenAwayBy))).toEqual(new Set(["kernels"]));
    expect(["graphs[0].kernels[0].levels.passes", "graphs[0].memory.peak_bytes | in MiB"].map(givenAwayBy)).toEqual(["nothing", "nothing"]);
  });
});

describe("a report without its kernels", () => {
  it("tells of no kernels that stayed apart", () => {
    expect(costliestRefusals(exampleReport.graphs)).not.toEqual([]);
    expect(costliestRefusals(withoutKernels(exampleReport).graphs)).toEqual([]);
  });
});

describe("answers", () => {
  it("count to the digits that a person writes", () => {
    expect(isRight("1,024", asked, 1024)).toBe(true);
    expect(isRight("48", asked, 48.02)).toBe(true);
    expect(isRight("47", asked, 48)).toBe(false);
    expect(isRight("", asked, 0)).toBe(false);
  });
  it("may be any of several lines or nodes", () => {
    expect(isRight("6", { ...asked, kind: "line" }, [5, 6])).toBe(true);
    expect(isRight("MM", { ...asked, kind: "node" }, ["mm"])).toBe(true);
    expect(isRight("relu", { ...asked, kind: "node" }, ["mm"])).toBe(false);
  });
  it("are shown with their unit, one or many", () => {
    expect(shownValue(1, "kernels")).toBe("1 kernel");
    expect(shownValue(0.23456, "MiB")).toBe("0.235 MiB");
    expect(shownValue(["mm", "add"])).toBe("mm, add");
  });
});

describe("numbers of a text", () => {
  it("are told where this exploration has another", () => {
    expect(differsHere(claim("1 kernel"), found(1))).toBeNull();
    expect(differsHere(claim("two kernels"), found(2))).toBeNull();
    expect(differsHere(claim("0.5 MiB"), found(0.52))).toBeNull();
    expect(differsHere(claim("1 kernel"), found(3))).toBe("“1 kernel” is 3 here");
  });
  it("are not told before they are known", () => {
    expect(differsHere(claim("1 kernel"), undefined)).toBeNull();
  });
});

import { describe, expect, it } from "vitest";
import { Timing } from "../components/detail/Timing";
import { figuresOf } from "../components/figures";
import type { Report, WrongResult } from "../report";
import { isWrong, timeLabel, wrongOf } from "../wrong";
import { exampleReport } from "./example";
import { textOf } from "./textOf";

const message = "Output 1 of graph_0 (`add`) has an error of 4.9e+27 against float64; eager's is 1.0e-07, and 1.0e-05 is allowed.";
const wrong: WrongResult = { contestant: "compiled", graph: "graph_0", entry: "f", output: "add", error: 4.9e27, eager_error: 1e-7, tolerance: 1e-5, message };

/** The report as the compiler leaves it where that contestant's result is wrong. */
function spoiled(contestant: WrongResult["contestant"]): Report {
  const { timing, summary } = exampleReport;
  const contestants = timing!.contestants.filter((one) => one.name !== contestant);
  const times = contestant === "peer" ? { peer_ms: null } : { compiled_ms: null, speedup: null };
  return {
    ...exampleReport,
    status: contestant === "compiled" ? "wrong_result" : "ok",
    wrong_results: [{ ...wrong, contestant }],
    timing: { ...timing!, contestants },
    summary: { ...summary, ...times },
  };
}

describe("a wrong result", () => {
  it("is what the answer bar begins with, and has no time there", () => {
    const report = spoiled("compiled");
    const figures = figuresOf(report.summary, report);
    expect(figures[0]).toMatchObject({ id: "wrong", tone: "bad" });
    expect(textOf(figures[0]!.value)).toBe("1 wrong result");
    const time = figures.find((one) => one.id === "time")!;
    expect(textOf(time.value)).not.toContain("→");
    expect(textOf(time.value)).not.toContain("×");
    expect(time.tone).toBeUndefined();
    expect(timeLabel(report)).toContain("a wrong result has no time");
    expect(figures.find((one) => one.id === "error")?.tone).toBe("bad");
  });

  it("that is NaN says so where the error would stand", () => {
    const report = spoiled("compiled");
    const summary = { ...report.summary, compiled_error: null };
    expect(textOf(figuresOf(summary, report).find((one) => one.id === "error")?.value)).toContain("cannot be compared");
  });

  it("stands beside the times of the others", () => {
    const told = textOf(Timing({ report: spoiled("compiled") }));
    expect(told).toContain(message);
    expect(told).not.toContain("compiled");
  });

  it("leaves the phases of compiling in the table, a phase that only one has too", () => {
    const told = textOf(Timing({ report: exampleReport }));
    expect(told).toMatch(/compilingours.*capture201 ms479 msbuild413 ms/);
  });

  it("is told where nothing was timed", () => {
    expect(textOf(Timing({ report: { ...spoiled("compiled"), timing: null } }))).toContain(message);
  });

  it("of the peer leaves ours its time", () => {
    const report = spoiled("peer");
    expect(isWrong(report)).toBe(false);
    expect(figuresOf(report.summary, report).some((one) => one.id === "wrong")).toBe(false);
    expect(timeLabel(report)).toBe("eager → compiled, the peer's result is wrong");
    expect(textOf(Timing({ report }))).toContain("the peer's result is wrong");
  });

  it("is not in a report that was stored before they were told", () => {
    expect(wrongOf({} as Report, "compiled")).toEqual([]);
    expect(figuresOf(exampleReport.summary, exampleReport)[0]?.id).toBe("kernels");
  });
});

import { describe, expect, it } from "vitest";
import { fieldsFrom, NO_OPTIONS, requestFrom } from "../options";
import type { SweepResult, SweptSize } from "../report";
import { curvesOf, outcomeWord, parseSweep, sweepAround, sweepProblem, sweepText } from "../sweep";

const nothing: SweptSize = {
  value: 0, error: null, launches: null, kernels: null, bytes: null, floor_bytes: null, predicted_us: null,
  measured_us: null, wrong_results: [], eager_ms: null, compiled_ms: null, plans: {}, flips: [], more_flips: 0,
};

function sweepOf(...sizes: Partial<SweptSize>[]): SweepResult {
  return { name: "N", sizes: sizes.map((size) => ({ ...nothing, ...size })), pairs: [], more_pairs: 0, verdict: "", message: null };
}

describe("a sweep that is asked for", () => {
  it("is read from a name and numbers, however they are set apart", () => {
    expect(parseSweep("N = 256, 1024 4096;8")).toEqual({ name: "N", values: [256, 1024, 4096, 8] });
    expect(parseSweep("x.shape[0], y.shape[1]=8,16")).toEqual({ name: "x.shape[0], y.shape[1]", values: [8, 16] });
    expect(parseSweep("  ")).toBeNull();
  });

  it.each(["N", "N = 8", "= 8, 16", "N = 8, many", "N = 8, -16", "N = 8, 1.5", "8, 16"])("is refused as %s", (text) => {
    expect(sweepProblem(text)).toContain("such as N = 256, 1024, 4096");
  });

  it("goes into the request, and back from a stored report into the field", () => {
    const request = requestFrom("x", { ...NO_OPTIONS, sweep: "N=8,16" });
    expect(request.sweep).toEqual({ name: "N", values: [8, 16] });
    expect(requestFrom("x", NO_OPTIONS)).not.toHaveProperty("sweep");
    expect(fieldsFrom({ sweep: { ...request.sweep, max_seconds: 40 } }).sweep).toBe("N = 8, 16");
    expect(fieldsFrom({ sweep: null }).sweep).toBe("");
    expect(sweepText(parseSweep(sweepText(request.sweep)))).toBe("N = 8, 16");
  });
});

describe("a size that is offered", () => {
  it("is swept around what is written", () => {
    expect(sweepAround({ name: "N", value: 1024, lines: [2] }).values).toEqual([128, 256, 512, 1024, 2048, 4096, 8192]);
    expect(sweepAround({ name: "N", value: 3, lines: [] }).values).toEqual([3, 6, 12, 24]);
    expect(sweepAround({ name: "N", value: 0, lines: [] }).values).toEqual([0, 1]);
  });
});

describe("the curves of a sweep", () => {
  it("are in microseconds, and leave out what is not known and what logarithms have no place for", () => {
    const sweep = sweepOf({ value: 0, predicted_us: 3 }, { value: 8, predicted_us: 4, compiled_ms: 0.5 }, { value: 16, error: "no" }, { value: 32, predicted_us: 9 });
    expect(curvesOf(sweep)).toEqual([
      { id: "predicted", points: [[8, 4], [32, 9]] },
      { id: "compiled", points: [[8, 500]] },
    ]);
  });
});

describe("an outcome", () => {
  it("is what became of the two in the end", () => {
    expect(outcomeWord({ verdict: "refused", reason: "dependency.intermediate", together: true })).toBe("fused");
    expect(outcomeWord({ verdict: "never considered", reason: null, together: false })).toBe("apart");
    expect(outcomeWord(null)).toBe("");
  });
});

import { describe, expect, it, vi } from "vitest";
import { sentenceOf, startExploration } from "../api";
import { Timing } from "../components/detail/Timing";
import { figuresOf, spreadText } from "../components/figures";
import { nextStage, restMs, STAGES } from "../components/Progress";
import { middle } from "../format";
import type { Observed, Report } from "../report";
import { drawer } from "../state";
import { announcementOf } from "../verdict";
import { timeOf, titleOf, type Visit, withVisit } from "../visits";
import { exampleReport } from "./example";
import { textOf } from "./textOf";

describe("a request that is refused", () => {
  it("is told in words of the page", async () => {
    expect(sentenceOf({ where: "body.source", message: "the source contains a NUL character" })).toBe(
      "The snippet is not accepted: the source contains a NUL character.",
    );
    expect(sentenceOf({ where: "body.inputs.1.shape", message: "it must have at most 12 values" })).toBe(
      "The inputs (number 2) are not accepted: it must have at most 12 values.",
    );
    vi.stubGlobal("fetch", () => Promise.resolve(new Response('{"detail": "The body has 5160027 bytes."}', { status: 413 })));
    await expect(startExploration({ source: "x" })).rejects.toThrow("The snippet is too long for this service.");
    vi.unstubAllGlobals();
    expect(sentenceOf({ where: "body.min_runs", message: "it must be greater than 0" })).toMatch(/^“min runs” is not accepted/);
  });
});

describe("progress", () => {
  it("names the stage that comes next", () => {
    expect(nextStage([])).toBe("capture");
    expect(nextStage(["capture", "lower", "schedule"])).toBe("codegen");
    expect(nextStage([...STAGES])).toBeNull();
  });

  it("predicts the rest from the time before, where all of that is known", () => {
    const all = exampleReport.stages.reduce((sum, stage) => sum + stage.ms, 0);
    const [first] = exampleReport.stages;
    expect(restMs([], exampleReport)).toBeCloseTo(all);
    expect(restMs([first!.name], exampleReport)).toBeCloseTo(all - first!.ms);
    expect(restMs([], exampleReport, first!.ms)).toBeCloseTo(all - first!.ms);
    expect(restMs([], exampleReport, 10 * all)).toBeCloseTo(all - first!.ms);
    expect(restMs([], null)).toBeNull();
    expect(restMs([], { ...exampleReport, stages: exampleReport.stages.slice(0, 3) })).toBeNull();
  });
});

describe("figures", () => {
  it("keep what was measured and what is predicted apart", () => {
    const graphs = exampleReport.graphs.map((graph) => ({ ...graph, predicted_us: 21.5 }));
    const figures = figuresOf(exampleReport.summary, { ...exampleReport, graphs });
    expect(figures.find((one) => one.id === "time")?.group).toBe("measured");
    const predicted = figures.filter((one) => one.group === "predicted");
    expect(predicted.map((one) => textOf(one.value))).toEqual(["21.5 µs"]);
  });

  it("give no prediction that lacks a graph", () => {
    const graphs = [{ ...exampleReport.graphs[0]!, predicted_us: 21.5 }, { ...exampleReport.graphs[0]!, predicted_us: null }];
    expect(figuresOf(exampleReport.summary, { ...exampleReport, graphs }).some((one) => one.group === "predicted")).toBe(false);
  });

  it("lead to the errors, and say where nothing was compared", () => {
    vi.stubGlobal("requestAnimationFrame", () => 0);
    const errorOf = (one: Report) => figuresOf(one.summary, one).find(({ id }) => id === "error");
    errorOf(exampleReport)?.open();
    expect(drawer.value).toBe("errors");
    const random = { ...exampleReport, summary: { ...exampleReport.summary, compiled_error: null, eager_error: null } };
    expect(textOf(errorOf(random)?.value)).toBe("not compared");
    errorOf(random)?.open();
    expect(drawer.value).toBe("notes");
    expect(errorOf({ ...random, stages: [] })).toBeUndefined();
  });

  it("say where calls were to be timed and were not, and lead to the reason", () => {
    vi.stubGlobal("requestAnimationFrame", () => 0);
    const timeOf = (one: Report) => figuresOf(one.summary, one).find(({ id }) => id === "time");
    const untimed = { ...exampleReport, timing: null, summary: { ...exampleReport.summary, compiled_ms: null, eager_ms: null, peer_ms: null, speedup: null } };
    expect(textOf(timeOf(untimed)?.value)).toBe("not timed");
    timeOf(untimed)?.open();
    expect(drawer.value).toBe("notes");
    const said = untimed.stages.map((stage) => (stage.name === "measure" ? { ...stage, message: "no compiled call returned" } : stage));
    timeOf({ ...untimed, stages: said })?.open();
    expect(drawer.value).toBe("stages");
    const skipped = untimed.stages.map((stage) => ({ ...stage, status: "skipped" as const }));
    expect(timeOf({ ...untimed, stages: skipped })).toBeUndefined();
  });

  it("tell an error with what rounding explains of it", () => {
    const summary = { ...exampleReport.summary, compiled_error: 0.25, eager_error: 0, allowed_error: 1.6 };
    expect(textOf(figuresOf(summary, exampleReport).find(({ id }) => id === "error")?.value)).toBe("2.5e-1 (eager 0, 1.6e0 allowed)");
  });

  it("count one kernel as one", () => {
    const summary = { ...exampleReport.summary, eager_kernels: 1, kernels: 1 };
    expect(textOf(figuresOf(summary, exampleReport)[0]?.value)).toBe("1 → 1 kernel");
  });

  it("say that the GPU was slowed beside the times that it took", () => {
    const clocks = { looks: 9, sm_mhz_least: 1410, sm_mhz_possible: 1980, temperature_c_most: 84, slowed_by: ["power cap"] };
    const seen = (slowed_by: string[]): Report => ({ ...exampleReport, observed: { ...({} as Observed), gpu_while_timed: { ...clocks, slowed_by } } });
    const timeOf = (one: Report): string => textOf(figuresOf(one.summary, one).find(({ id }) => id === "time")?.value);
    expect(timeOf(seen(["power cap"]))).toContain("slowed GPU");
    expect(timeOf(seen([]))).not.toContain("slowed");
    expect(textOf(Timing({ report: seen(["power cap"]) }))).toContain("(power cap): its times are too long. The GPU's clock was 1,410 of 1,980 MHz or more, at up to 84 °C.");
  });

  it("tell how far the samples spread", () => {
    expect(spreadText(exampleReport)).toMatch(/^± \d+(\.\d)? %$/);
    expect(spreadText({ ...exampleReport, timing: null })).toBe("");
    const timing = exampleReport.timing!;
    const contestants = timing.contestants.map((one) => ({ ...one, samples_ms: [one.median_ms, one.median_ms] }));
    expect(spreadText({ ...exampleReport, timing: { ...timing, contestants } })).toBe("2 samples");
  });
});

describe("names", () => {
  it("are cut in the middle", () => {
    expect(middle("add_relu_transposed", 11)).toBe("add_r…posed");
    expect(middle("add", 11)).toBe("add");
  });
});

describe("earlier explorations", () => {
  const visit = (id: string): Visit => ({ id, title: id, verdict: "", at: 0 });

  it("come once each, the newest first", () => {
    expect(withVisit([visit("b"), visit("a")], visit("a")).map(({ id }) => id)).toEqual(["a", "b"]);
  });

  it("tell the day where it is another", () => {
    const at = new Date(2026, 10, 24, 14, 5).getTime();
    expect(timeOf({ ...visit("a"), at }, new Date(2026, 10, 24, 18, 0).getTime())).toMatch(/^(14|02|2):05/);
    expect(timeOf({ ...visit("a"), at }, new Date(2026, 10, 25, 9, 0).getTime())).toMatch(/24.*05/);
  });

  it("have the name of what is explored", () => {
    expect(titleOf("import torch\n\ndef first(x):\n    return x\n\nclass Block(nn.Module):\n    def forward(self): ...")).toBe("Block");
    expect(titleOf("import torch\nprint(torch.ones(2))")).toBe("print(torch.ones(2))");
    expect(titleOf("")).toBe("empty");
  });
});

describe("the end of an exploration", () => {
  it("is said aloud by what came of it", () => {
    expect(announcementOf(exampleReport)).toBe(exampleReport.summary.verdict);
    const error = { type: "ValueError", message: "not this one\nmore", line: 7, hint: null } as NonNullable<Report["error"]>;
    expect(announcementOf({ ...exampleReport, status: "user_error", error })).toBe("The snippet failed. Line 7: not this one.");
  });
});

import { describe, expect, it } from "vitest";
import { traceOf } from "../components/detail/exports";
import { Errors } from "../components/detail/Errors";
import { besideEager } from "../components/detail/Timing";
import { KernelLevels as LevelsOf } from "../components/detail/KernelLevels";
import { factsOf, kindInWords } from "../components/detail/kernelWords";
import { bytesOf, measuredOf, predictedOf, recordedOf, stagesOf, ticksUpTo } from "../components/detail/lanes";
import { renderingsOf } from "../components/detail/renderings";
import { along, decades, ridgeOf, roofAt, rooflineOf } from "../components/detail/roof";
import * as format from "../format";
import { linksOf } from "../links";
import type { Contestant, Graph, Kernel, KernelLevels, LaunchTraffic, Report } from "../report";
import { exampleGraph, exampleReport } from "./example";
import { textOf } from "./textOf";

const [product, softmax] = exampleGraph.kernels as [Kernel, Kernel];
const alone: Report = { ...exampleReport, graphs: [exampleGraph] };
const ends = (lane: { rows: { from: number; length: number }[][] }): number[] => lane.rows.map((row) => row.reduce((sum, bar) => sum + bar.length, 0));

describe("a kernel in words", () => {
  const with_ = (levels: Partial<KernelLevels>): Kernel => ({ ...softmax, kind: "triton", levels: { ...softmax.levels, ...levels } as KernelLevels });

  it("says what it does and what one program takes", () => {
    expect(kindInWords(with_({ plan: "persistent", tile: { XBLOCK: 1, RBLOCK: 1024 } }), exampleGraph)).toBe("reduction over 1024 elements, a row in registers, one row a program");
    expect(kindInWords(with_({ plan: "looped", passes: 3, tile: { XBLOCK: 4, RBLOCK: 1024 } }), exampleGraph)).toBe("reduction over 1024 elements in 3 passes, 4 rows a program");
    expect(kindInWords(with_({ plan: "pointwise", tile: { XBLOCK: 1024 } }), exampleGraph)).toBe("element by element, 1,024 elements a program");
    expect(kindInWords(product, exampleGraph)).toBe("library call");
  });

  it("says of programs and registers beside a C++ kernel which target's they are", () => {
    const { levels } = with_({ plan: "persistent", tile: { XBLOCK: 1, RBLOCK: 1024 } });
    const compiled: Kernel = { ...softmax, kind: "cpp", registers: null, spills: null, levels, also: [{ ...softmax.also[0]!, target: "sm_90", registers: 32, spills: 0 }] };
    expect(kindInWords(compiled, exampleGraph)).toBe(`reduction over 1024 elements, a row in registers, one row a program (${levels!.target})`);
    expect(factsOf(compiled, "AMD EPYC", "NVIDIA H200").map(({ name }) => name)).toEqual(expect.arrayContaining(["registers (sm_90)", "spilled (sm_90)"]));
    expect(factsOf({ ...softmax, kind: "triton", registers: 32, spills: 0 }, "NVIDIA H200", "NVIDIA H200").map(({ name }) => name)).toEqual(expect.arrayContaining(["registers", "spilled"]));
  });

  it("has no figure that is not known, and marks a prediction", () => {
    const facts = factsOf({ ...softmax, measured_us: null, gb_per_s: null }, "Intel Xeon", "NVIDIA H200");
    expect(facts.map((fact) => fact.name)).not.toContain("measured");
    expect(facts.find((fact) => fact.isPredicted)).toMatchObject({ name: "for NVIDIA H200", value: "380 µs" });
  });
});

describe("the levels of memory of a kernel", () => {
  const launch = { kernel: softmax.name, bytes: 0, tensors: [] } as unknown as LaunchTraffic;
  const levels = { target: "sm_90", plan: "product", programs: 1, threads: 32, tile: {}, passes: 1, loads: [], missed_bytes: 0, kept: [], combined: [] } as unknown as KernelLevels;

  it("are not all of a product on a CPU, where the library's call writes to memory", () => {
    const told = (steps: Kernel["steps"]): string => textOf(LevelsOf({ graph: exampleGraph, kernel: { ...softmax, kind: "cpp", levels, steps }, launch }));
    expect(told([{ function: null, buffers: [], call: "mm" }])).toContain("the library computes mm. What passes between it and the C++ kernel goes through memory");
    expect(told([])).toContain("It keeps the same values in the registers");
  });
});

describe("renderings of a kernel", () => {
  it("lead from a line of PTX to the node, its operation and the reader's line", () => {
    const at = renderingsOf(softmax).findIndex((one) => one.id === "ptx");
    const partners = linksOf([exampleGraph]).partners(`code:${exampleGraph.name}/1:${at}:13`);
    for (const partner of ["line:9", "line:10", `loop:${exampleGraph.name}/buf3`, `kernel:${exampleGraph.name}/1`]) expect(partners).toContain(partner);
  });
});

describe("the timeline", () => {
  it("has measured and predicted times apart, and says what has none", () => {
    const measured = measuredOf(exampleGraph, alone, format.microseconds);
    expect(measured.lanes.map((lane) => [lane.name, lane.basis])).toEqual([["eager", "measured"], ["compiled", "measured"], ["TorchInductor", "measured"], ["kernels, each alone", "measured"]]);
    expect(ends(measured.lanes[3]!)).toEqual([412]);
    expect(measured.most).toBeCloseTo(62_742.1);
    expect(measured.missing).toEqual(["2 launches, library calls among them, were not timed alone."]);
    const predicted = predictedOf(exampleGraph, format.microseconds);
    expect(predicted.lanes.map((lane) => lane.basis)).toEqual(["predicted"]);
    expect(ends(predicted.lanes[0]!)).toEqual([20_100 + 380 + 1450]);
  });

  it("has no whole call beside one graph of several: it is of all of them", () => {
    const both = { ...exampleReport, graphs: [exampleGraph, exampleGraph] };
    const { lanes, missing } = measuredOf(exampleGraph, both, format.microseconds);
    expect(lanes.map((lane) => lane.name)).toEqual(["kernels, each alone"]);
    expect(missing[0]).toContain("all graphs together");
  });

  it("says that disturbed times are disturbed", () => {
    const { missing } = measuredOf({ ...exampleGraph, disturbed: "They add up to more." }, alone, format.microseconds);
    expect(missing.join(" ")).toContain("disturbed. They add up to more.");
  });

  it("has the bytes of eager's calls above ours, and both are the sums of the report", () => {
    const { lanes } = bytesOf(exampleGraph, format.bytes);
    expect(lanes.map((lane) => lane.name)).toEqual(["eager", "compiled"]);
    for (const length of ends(lanes[0]!)) expect(length).toBe(exampleGraph.traffic?.eager?.bytes);
    expect(ends(lanes[1]!)).toEqual([exampleGraph.traffic?.fused?.bytes]);
  });

  it("has stages that ran one after the other", () => {
    const stages = stagesOf(exampleReport, format.microseconds);
    expect(stages?.rows[0]?.map((bar) => bar.label)).toEqual(exampleReport.stages.filter((one) => one.status !== "skipped" && one.ms > 0).map((one) => one.name));
  });

  it("has round ticks from zero", () => {
    expect(ticksUpTo(23)).toEqual([0, 5, 10, 15, 20]);
    expect(ticksUpTo(0)).toEqual([0]);
  });
});

describe("the roofline", () => {
  const timed = (kernel: Partial<Kernel>): Graph => ({ ...exampleGraph, kernels: [{ ...softmax, ...kernel }] });

  it("holds what was measured against the device that ran, and predictions against theirs", () => {
    expect(rooflineOf(exampleGraph, alone, "measured")?.peak.device).toBe("Intel Xeon");
    expect(rooflineOf(exampleGraph, alone, "predicted")?.peak.device).toBe("NVIDIA H200");
  });

  it("counts the share of what is possible at a kernel's intensity", () => {
    // 36 GB/s: one microsecond moves 36 kB at most, with half an operation a byte.
    const [point] = rooflineOf(timed({ bytes: 18_000, flops: 9000, measured_us: 1 }), alone, "measured")?.points ?? [];
    expect(point?.intensity).toBeCloseTo(0.5);
    expect(point?.percent).toBeCloseTo(50);
    // Far right of the ridge, operations are the bound: 160 Gflop/s are 160,000 a microsecond.
    const [bound] = rooflineOf(timed({ bytes: 1000, flops: 40_000, measured_us: 1 }), alone, "measured")?.points ?? [];
    expect(bound?.percent).toBeCloseTo(25);
  });

  it("has no point for what is not known", () => {
    expect(rooflineOf(timed({ measured_us: null }), alone, "measured")).toBeNull();
    expect(rooflineOf(timed({ gb_per_s: null }), alone, "measured")).toBeNull();
    expect(rooflineOf(timed({ flops: null }), alone, "measured")).toBeNull();
    expect(rooflineOf({ ...timed({}), disturbed: "They do not add up." }, alone, "measured")).toBeNull();
    expect(rooflineOf(timed({}), { ...alone, environment: { ...alone.environment, peaks: [] } }, "measured")).toBeNull();
    expect(rooflineOf(exampleGraph, alone, "measured")?.unknown).toBe(2);
  });

  it("holds a kernel that computes nothing against the bandwidth alone", () => {
    const picture = rooflineOf(timed({ bytes: 9000, flops: 0, measured_us: 1 }), alone, "measured");
    expect(picture?.points).toEqual([]);
    expect(picture?.withoutOperations[0]?.percent).toBeCloseTo(25);
  });

  it("bends where operations become the bound", () => {
    const peak = exampleReport.environment.peaks[0]!;
    expect(roofAt(peak, ridgeOf(peak))).toBeCloseTo(160);
    expect(roofAt(peak, ridgeOf(peak) / 2)).toBeCloseTo(80);
    expect(roofAt(peak, ridgeOf(peak) * 10)).toBe(160);
  });

  it("has an axis of whole powers of ten", () => {
    const scale = decades([0.3, 42]);
    expect(scale.ticks).toEqual([0.1, 1, 10, 100]);
    expect(along(scale, 1)).toBeCloseTo(1 / 3);
  });
});

describe("the Chrome trace", () => {
  it("has what was measured and nothing that was predicted", () => {
    const events = traceOf(alone)?.traceEvents.filter((event) => event.ph === "X") ?? [];
    expect(events.filter((event) => event.pid === 2).map((event) => [event.name, event.dur])).toEqual([["softmax_rows", 412]]);
    expect(events.filter((event) => event.pid === 1).map((event) => event.dur)).toEqual(exampleReport.timing?.contestants.map((one) => 1000 * one.median_ms));
  });

  it("leaves out kernels whose times do not add up, and is none where nothing was measured", () => {
    const disturbed = { ...alone, graphs: [{ ...exampleGraph, disturbed: "They do not add up." }] };
    expect(traceOf(disturbed)?.traceEvents.some((event) => event.pid === 2)).toBe(false);
    expect(traceOf({ ...disturbed, timing: null })).toBeNull();
  });
});

describe("a recorded call", () => {
  it("has eager above our graphs, and what runs within an event below it", () => {
    const event = (contestant: string, name: string, start_us: number, duration_us: number) => ({ contestant, name, track: "thread 1", start_us, duration_us });
    const trace = [event("graph_0", "K2 fused_mul", 0, 40), event("eager", "aten::linear", 0, 90), event("eager", "aten::mm", 5, 80), event("eager", "aten::add", 90, 10), event("eager", "aten::view", 91, 0.001)];
    const { lanes, most, missing } = recordedOf({ ...exampleReport, graphs: [{ ...exampleGraph, name: "graph_0" }], trace }, String);
    expect(lanes.map(({ name, rows }) => [name, rows.map((row) => row.map((bar) => bar.label))])).toEqual([["eager", [["linear", "add"], ["mm"]]], ["graph_0", [["fused_mul"]]]]);
    expect([lanes[1]?.rows[0]?.[0]?.ref, most, missing.length]).toEqual(["kernel:graph_0/1", 100, 1]);
  });
});

describe("beside eager", () => {
  const taken = (median_ms: number, differs_from_eager: boolean | null): Contestant => ({ name: "compiled", samples_ms: [median_ms], median_ms, low_ms: median_ms, high_ms: median_ms, spread_ms: null, ratio_factor: 1.25, compile_s: null, differs_from_eager });

  it("tells the ratio, and none where the report has no measurable difference", () => {
    expect(besideEager(taken(10, true), taken(20, null))).toBe("2× as fast as eager ± 25 %");
    expect(besideEager(taken(30, true), taken(20, null))).toBe("takes 1.5× as long as eager ± 25 %");
    expect(besideEager(taken(10, false), taken(20, null))).toBe("no measurable difference from eager ± 25 %");
    expect(besideEager({ ...taken(10, true), ratio_factor: null }, taken(20, null))).toBe("2× as fast as eager");
  });
});

describe("errors", () => {
  it("say how the figure of the answer bar follows from them", () => {
    const of = { largest: 2e-3, mean: 1e-4, largest_ulp: 41_000, mean_ulp: 957 };
    const graph: Graph = { ...exampleGraph, errors: [{ output: "add", dtype: "float32", elements: 8, eager: of, compiled: of }] };
    const told = textOf(Errors({ report: { ...exampleReport, graphs: [graph], peer: null } }));
    expect(told).toContain("Largest relative error of an output: 1.1e-3, eager 1.4e-3.");
    for (const units of ["4.1e4", "960"]) expect(told).toContain(units);
    expect(told).not.toContain("later");
    // The figure is of all graphs: of one that draws random numbers, nothing was compared.
    const ofAll = textOf(Errors({ report: { ...exampleReport, graphs: [{ ...graph, errors: [] }, { ...graph, name: "later" }], peer: null } }));
    for (const word of ["Largest relative error", "later", "4.1e4"]) expect(ofAll).toContain(word);
  });

  it("say which results have no row, and are not silent where none has one", () => {
    const told = (aten: Graph["aten"]) => textOf(Errors({ report: { ...exampleReport, graphs: [{ ...exampleGraph, aten, errors: [] }], peer: null } }));
    const given = exampleGraph.aten.find(({ op }) => op === "output")!.args;
    const whole = exampleGraph.aten.map((node) => (node.name === given[0] ? { ...node, dtype: "int64" } : node));
    expect(told(whole)).toContain(`the share of elements that differ. ${given[0]} is of this kind and has no row.`);
    expect(told(exampleGraph.aten)).toBe("No output was compared with float64.");
  });
});

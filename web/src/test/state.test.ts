import { afterEach, describe, expect, it, vi } from "vitest";
import type { Report } from "../report";
import * as state from "../state";
import { exampleReport } from "./example";

const running: Report = {
  ...exampleReport,
  status: "running",
  graphs: exampleReport.graphs.map((graph) => ({ ...graph, kernels: [], decisions: [] })),
};

/** Links are made in slices: on a busy machine not all of them at once. */
const LINKED = { timeout: 4000 };

afterEach(() => {
  state.report.value = null;
  state.previous.value = null;
  state.runningSince.value = null;
  state.pinned.value = null;
  state.hovered.value = null;
});

describe("a pane while an exploration runs", () => {
  it("shows its part as soon as that has arrived", () => {
    state.runningSince.value = 0;
    state.previous.value = exampleReport;
    state.report.value = running;
    expect(state.newestWith((graph) => graph.aten.length > 0)).toMatchObject({ stale: false, report: running });
  });

  it("keeps the previous one, as stale, until then", () => {
    state.runningSince.value = 0;
    state.previous.value = exampleReport;
    state.report.value = running;
    expect(state.newestWith((graph) => graph.kernels.length > 0)).toMatchObject({ stale: true, report: exampleReport });
  });

  it("never shows a stale part of one that is whole", () => {
    state.previous.value = exampleReport;
    state.report.value = { ...running, status: "ok" };
    expect(state.newestWith((graph) => graph.kernels.length > 0)?.stale).toBe(false);
  });

  it("keeps what a failure did not find out, as stale", async () => {
    state.previous.value = exampleReport;
    state.report.value = { ...running, graphs: [], status: "user_error" };
    expect(state.newestWith((graph) => graph.aten.length > 0)).toMatchObject({ stale: true, report: exampleReport });
    expect(state.showsPrevious.value).toBe(true);
    await vi.waitFor(() => expect(state.links.value.partners(state.refs.value.aten("mm")).size).toBeGreaterThan(0), LINKED);
  });
});

describe("light", () => {
  it("falls on what is pinned rather than on what is under the pointer", async () => {
    state.report.value = exampleReport;
    state.hovered.value = state.refs.value.aten("mm");
    state.pinned.value = state.refs.value.aten("mul");
    await vi.waitFor(() => expect(state.lit.value).toContain(state.refs.value.loop("buf1")), LINKED);
    expect(state.lit.value).not.toContain(state.refs.value.loop("buf0"));
  });

  it("opens the kernel that fused most, where none was picked", () => {
    state.report.value = exampleReport;
    expect(state.kernelShown.value).toBe(1);
  });
});

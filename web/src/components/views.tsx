/**
 * The views of the drawer, in the order and the groups of the toolbar. A new view is one entry: its id stands in the address
 * (`show=timing`), its label in the toolbar, its badge beside the label.
 *
 * A view of a graph is shown once the part that it needs has arrived; until then the exploration before stands there,
 * grey. A view of the report has something to say even where nothing was captured.
 */
import type { ComponentChildren } from "preact";
import type { Report } from "../report";
import type { Shown } from "../state";
import { isFlipping } from "../sweep";
import { isWrong } from "../wrong";
import { fxLevel } from "../state";
import { later } from "./later";
import { countRows } from "./why/decisionRows";

const Capture = later("Capture");
const Compare = later("Compare");
const Decisions = later("Decisions");
const Errors = later("Errors");
const Export = later("Export");
const LoopList = later("LoopList");
const MemoryPlan = later("MemoryPlan");
const NodeTable = later("NodeTable");
const Notes = later("Notes");
const Passes = later("Passes");
const Replays = later("Replays");
const Roofline = later("Roofline");
const Stages = later("Stages");
const Sweep = later("Sweep");
const Timeline = later("Timeline");
const Timing = later("Timing");
const Traffic = later("Traffic");
const WhatIf = later("WhatIf");
const Wrapper = later("Wrapper");

interface Named {
  id: string;
  label: string;
  /** What it shows, for who points at the label. */
  about: string;
  /** It may be read while a question about the exploration is open. */
  tellsNoAnswer?: true;
}

export interface GraphView extends Named {
  of: "graph";
  badge?(shown: Shown): number | undefined;
  /** True once the part that this view shows has arrived. */
  hasPart(shown: Shown): boolean;
  render(shown: Shown): ComponentChildren;
  renderWithoutGraph?(whole: Report): ComponentChildren;
}

export interface ReportView extends Named {
  of: "report";
  badge?(whole: Report): number | undefined;
  render(whole: Report): ComponentChildren;
}

export type View = GraphView | ReportView;

const levelOf = ({ graph }: Shown): "aten" | "fx" => (graph.aten.length === 0 ? "fx" : fxLevel.value);

/** Why; time; memory; results; the way of the compiler; files. */
export const GROUPS: readonly (readonly View[])[] = [
  [
    {
      of: "graph",
      id: "decisions",
      label: "Decisions",
      about: "Every pair that the scheduler looked at, with its verdict and its reason",
      badge: ({ graph }) => countRows(graph),
      hasPart: ({ graph }) => graph.decisions.length > 0,
      render: ({ graph }) => <Decisions graph={graph} />,
    },
    {
      of: "report",
      id: "what-if",
      label: "What if",
      about: "Explore again with other rules, limits or another device",
      badge: (whole) => whole.what_if.length,
      render: (whole) => <WhatIf report={whole} />,
    },
    {
      of: "report",
      id: "compare",
      label: "Compare",
      about: "This exploration beside another one",
      render: (whole) => <Compare report={whole} />,
    },
  ],
  [
    {
      of: "graph",
      id: "timing",
      label: "Timing",
      about: "Whole calls, measured: eager beside compiled",
      hasPart: ({ report }) => report.timing !== null || isWrong(report),
      render: ({ report }) => <Timing report={report} />,
    },
    {
      of: "graph",
      id: "timeline",
      label: "Timeline",
      about: "Everything that runs, on one time axis",
      hasPart: ({ graph }) => graph.kernels.length > 0,
      render: ({ graph, report }) => <Timeline graph={graph} report={report} />,
    },
    {
      of: "graph",
      id: "roofline",
      label: "Roofline",
      about: "How close each kernel comes to what the device can do",
      hasPart: ({ graph }) => graph.kernels.some((kernel) => kernel.measured_us !== null || kernel.predicted_us !== null),
      render: ({ graph, report }) => <Roofline graph={graph} report={report} />,
    },
    {
      of: "report",
      id: "sweep",
      label: "Sweep",
      about: "The snippet at other sizes",
      badge: ({ sweep }) => sweep?.sizes.filter(isFlipping).length,
      render: (whole) => <Sweep report={whole} />,
    },
  ],
  [
    {
      of: "graph",
      id: "traffic",
      label: "Traffic",
      about: "The bytes that go through memory, counted",
      // Eager's share is counted first; fusion's arrives with the schedule.
      hasPart: ({ graph }) => graph.traffic?.fused != null,
      render: ({ graph, report }) => <Traffic graph={graph} report={report} />,
    },
    {
      of: "graph",
      id: "buffers",
      label: "Memory",
      about: "The place of each buffer, and reused memory",
      badge: ({ graph }) => graph.buffers.length,
      hasPart: ({ graph }) => graph.buffers.length > 0,
      render: ({ graph }) => <MemoryPlan graph={graph} />,
    },
  ],
  [
    {
      of: "graph",
      id: "errors",
      label: "Errors",
      about: "Each output against the same computation in float64",
      hasPart: ({ report }) => report.graphs.some((graph) => graph.errors.length > 0) || (report.peer?.errors ?? []).length > 0,
      render: ({ report }) => <Errors report={report} />,
    },
    { of: "report", id: "notes", label: "Output", about: "Output of the snippet, and notes about it", tellsNoAnswer: true, badge: ({ notes }) => notes.length, render: (whole) => <Notes report={whole} /> },
  ],
  [
    {
      of: "graph",
      id: "capture",
      label: "Capture",
      about: "Graph breaks, guards and recompilations",
      badge: ({ report }) => report.breaks.length + report.graphs.reduce((sum, one) => sum + one.recompiles.length, 0),
      hasPart: () => true,
      render: ({ report, graph }) => <Capture report={report} graph={graph} />,
      // Where tracing stopped is told even where it gave no graph at all.
      renderWithoutGraph: (whole) => (whole.compilations.length > 0 ? <Capture report={whole} graph={null} /> : null),
    },
    {
      of: "graph",
      id: "passes",
      label: "Passes",
      about: "The graph before and after each step of the compiler",
      hasPart: ({ graph }) => graph.aten.length > 0,
      render: ({ graph }) => <Passes graph={graph} />,
    },
    {
      of: "graph",
      id: "nodes",
      label: "Nodes",
      about: "The operations of the graph as a table",
      badge: (shown) => shown.graph[levelOf(shown)].length,
      hasPart: ({ graph }) => graph.aten.length + graph.fx.length > 0,
      render: (shown) => <NodeTable graph={shown.graph} level={levelOf(shown)} />,
    },
    {
      of: "graph",
      id: "loops",
      label: "Loops",
      about: "The loops that the operations became",
      badge: ({ graph }) => graph.loops.length,
      hasPart: ({ graph }) => graph.loops.length > 0,
      render: ({ graph }) => <LoopList graph={graph} />,
    },
    {
      of: "graph",
      id: "wrapper",
      label: "Wrapper",
      about: "The code that launches the kernels",
      hasPart: ({ graph }) => graph.wrapper !== "",
      render: ({ graph, report }) => <Wrapper graph={graph} report={report} />,
    },
    {
      of: "graph",
      id: "replay",
      label: "CUDA graph",
      about: "Whether the launches are replayed as one CUDA graph",
      hasPart: ({ graph }) => graph.replay != null,
      render: ({ graph }) => <Replays graph={graph} />,
    },
    { of: "report", id: "stages", label: "Stages", about: "How long each stage took, and where it ran", tellsNoAnswer: true, render: (whole) => <Stages report={whole} /> },
  ],
  [
    { of: "report", id: "export", label: "Export", about: "Files to take along: HTML, JSON, a trace, each kernel", render: (whole) => <Export report={whole} /> },
  ],
];

export const VIEWS: readonly View[] = GROUPS.flat();

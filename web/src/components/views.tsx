/**
 * The views of the drawer, in the order of the toolbar. A new view is one entry: its id stands in the address
 * (`show=timing`), its label in the toolbar, its badge beside the label.
 *
 * A view of a graph is shown once the part that it needs has arrived; until then the exploration before stands there,
 * grey. A view of the report has something to say even where nothing was captured.
 */
import type { ComponentChildren } from "preact";
import { ref } from "../links";
import type { Report } from "../report";
import type { Shown } from "../state";
import { isFlipping } from "../sweep";
import { isWrong } from "../wrong";
import { compilerShown, fxLevel } from "../state";
import { CodeView } from "./CodeView";
import { countRows } from "./why/decisionRows";
import { Decisions } from "./why/Decisions";
import { WhatIf } from "./why/WhatIf";
import { Export } from "./detail/Export";
import { Errors } from "./detail/Errors";
import { Compare } from "./why/Compare";
import { Passes } from "./passes/Passes";
import { Roofline } from "./detail/Roofline";
import { Timeline } from "./detail/Timeline";
import { later } from "./later";
import { LoopList } from "./detail/LoopList";
import { NodeTable } from "./detail/NodeTable";
import { Notes } from "./Notes";
import { Empty } from "./Scroller";
import { Stages } from "./detail/Stages";
import { Timing } from "./detail/Timing";
import { Traffic } from "./detail/Traffic";

const Capture = later(() => import("./Capture").then((file) => file.Capture));
const MemoryPlan = later(() => import("./detail/MemoryPlan").then((file) => file.MemoryPlan));
const Replays = later(() => import("./detail/Replays").then((file) => file.Replays));
const Sweep = later(() => import("./Sweep").then((file) => file.Sweep));

interface Named {
  id: string;
  label: string;
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

/** Of ours, or of the peer's where its kernels are shown. */
function Wrapper({ shown: { report, graph } }: { shown: Shown }) {
  const peer = compilerShown.value === "peer" ? report.peer : null;
  const theirs = peer?.graphs.find((one) => one.graph === graph.name);
  if (peer && theirs) {
    const origins = new Map(theirs.launches.map(({ line, kernel }) => [line, { ref: ref.peer(kernel), userLines: peer.kernels[kernel]?.user_lines ?? [] }]));
    return <CodeView label={`Wrapper source of ${peer.name}`} source={theirs.wrapper} language="python" origins={origins} />;
  }
  return graph.wrapper ? <CodeView label="Wrapper source" source={graph.wrapper} language="python" /> : <Empty>No wrapper was written.</Empty>;
}

const levelOf = ({ graph }: Shown): "aten" | "fx" => (graph.aten.length === 0 ? "fx" : fxLevel.value);

export const VIEWS: readonly View[] = [
  {
    of: "graph",
    id: "decisions",
    label: "Decisions",
    badge: ({ graph }) => countRows(graph),
    hasPart: ({ graph }) => graph.decisions.length > 0,
    render: ({ graph }) => <Decisions graph={graph} />,
  },
  {
    of: "graph",
    id: "timing",
    label: "Timing",
    hasPart: ({ report }) => report.timing !== null || isWrong(report),
    render: ({ report }) => <Timing report={report} />,
  },
  {
    of: "graph",
    id: "errors",
    label: "Errors",
    hasPart: ({ graph, report }) => graph.errors.length > 0 || (report.peer?.errors ?? []).length > 0,
    render: ({ graph, report }) => <Errors graph={graph} peer={report.peer} />,
  },
  {
    of: "graph",
    id: "timeline",
    label: "Timeline",
    hasPart: ({ graph }) => graph.kernels.length > 0,
    render: ({ graph, report }) => <Timeline graph={graph} report={report} />,
  },
  {
    of: "graph",
    id: "roofline",
    label: "Roofline",
    hasPart: ({ graph }) => graph.kernels.some((kernel) => kernel.measured_us !== null || kernel.predicted_us !== null),
    render: ({ graph, report }) => <Roofline graph={graph} report={report} />,
  },
  {
    of: "graph",
    id: "traffic",
    label: "Traffic",
    // Eager's share is counted first; fusion's arrives with the schedule.
    hasPart: ({ graph }) => graph.traffic?.fused != null,
    render: ({ graph, report }) => <Traffic graph={graph} report={report} />,
  },
  {
    of: "graph",
    id: "buffers",
    label: "Memory",
    badge: ({ graph }) => graph.buffers.length,
    hasPart: ({ graph }) => graph.buffers.length > 0,
    render: ({ graph }) => <MemoryPlan graph={graph} />,
  },
  {
    of: "graph",
    id: "replay",
    label: "CUDA graph",
    hasPart: ({ graph }) => graph.replay != null,
    render: ({ graph }) => <Replays graph={graph} />,
  },
  {
    of: "graph",
    id: "loops",
    label: "Loops",
    badge: ({ graph }) => graph.loops.length,
    hasPart: ({ graph }) => graph.loops.length > 0,
    render: ({ graph }) => <LoopList graph={graph} />,
  },
  {
    of: "graph",
    id: "passes",
    label: "Passes",
    hasPart: ({ graph }) => graph.aten.length > 0,
    render: ({ graph }) => <Passes graph={graph} />,
  },
  {
    of: "graph",
    id: "nodes",
    label: "Nodes",
    badge: (shown) => shown.graph[levelOf(shown)].length,
    hasPart: ({ graph }) => graph.aten.length + graph.fx.length > 0,
    render: (shown) => <NodeTable graph={shown.graph} level={levelOf(shown)} />,
  },
  {
    of: "graph",
    id: "capture",
    label: "Capture",
    badge: ({ report }) => report.breaks.length + report.graphs.reduce((sum, one) => sum + one.recompiles.length, 0),
    hasPart: () => true,
    render: ({ report, graph }) => <Capture report={report} graph={graph} />,
    // Where tracing stopped is told even where it gave no graph at all.
    renderWithoutGraph: (whole) => (whole.compilations.length > 0 ? <Capture report={whole} graph={null} /> : null),
  },
  {
    of: "graph",
    id: "wrapper",
    label: "Wrapper",
    hasPart: ({ graph }) => graph.wrapper !== "",
    render: (shown) => <Wrapper shown={shown} />,
  },
  {
    of: "report",
    id: "sweep",
    label: "Sweep",
    badge: ({ sweep }) => sweep?.sizes.filter(isFlipping).length,
    render: (whole) => <Sweep report={whole} />,
  },
  {
    of: "report",
    id: "what-if",
    label: "What if",
    badge: (whole) => whole.what_if.length,
    render: (whole) => <WhatIf report={whole} />,
  },
  {
    of: "report",
    id: "compare",
    label: "Compare",
    render: (whole) => <Compare report={whole} />,
  },
  { of: "report", id: "stages", label: "Stages", render: (whole) => <Stages report={whole} /> },
  { of: "report", id: "notes", label: "Output", badge: ({ notes }) => notes.length, render: (whole) => <Notes report={whole} /> },
  { of: "report", id: "export", label: "Export", render: (whole) => <Export report={whole} /> },
];

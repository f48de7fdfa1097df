import type { ComponentChildren } from "preact";
import type { Report } from "../report";
import { type BottomTab, bottomTab, isRunning, newestWith, report, type Shown } from "../state";
import { isFlipping } from "../sweep";
import { isWrong } from "../wrong";
import { Capture } from "./Capture";
import { CodeView } from "./CodeView";
import { Decisions } from "./Decisions";
import { MemoryPlan } from "./MemoryPlan";
import { Notes } from "./Notes";
import { Replays } from "./Replays";
import { Empty } from "./Scroller";
import { Stages } from "./Stages";
import { Sweep } from "./Sweep";
import { TabPanel, Tabs } from "./Tabs";
import { Timing } from "./Timing";
import { Traffic } from "./Traffic";
import { WhatIf } from "./WhatIf";

interface View {
  id: BottomTab;
  label: string;
  badge?: number | undefined;
  /** True once the part that this view shows has arrived. */
  hasPart(shown: Shown): boolean;
  render(shown: Shown): ComponentChildren;
  renderWithoutGraph?(whole: Report): ComponentChildren;
}

function viewsOf(shown: Shown | null): View[] {
  const graph = shown?.graph;
  return [
    { id: "decisions", label: "Decisions", badge: graph?.decisions.length, hasPart: (one) => one.graph.decisions.length > 0, render: (one) => <Decisions graph={one.graph} /> },
    { id: "timing", label: "Timing", hasPart: (one) => one.report.timing !== null || isWrong(one.report), render: (one) => <Timing report={one.report} /> },
    // Eager's share is counted first; fusion's arrives with the schedule.
    { id: "traffic", label: "Traffic", hasPart: (one) => one.graph.traffic?.fused != null, render: (one) => <Traffic graph={one.graph} report={one.report} /> },
    { id: "buffers", label: "Memory", badge: graph?.buffers.length, hasPart: (one) => one.graph.buffers.length > 0, render: (one) => <MemoryPlan graph={one.graph} /> },
    { id: "replay", label: "CUDA graph", hasPart: (one) => one.graph.replay != null, render: (one) => <Replays graph={one.graph} /> },
    {
      id: "capture",
      label: "Capture",
      badge: (shown?.report.breaks.length ?? 0) + (shown?.report.graphs ?? []).reduce((sum, one) => sum + one.recompiles.length, 0),
      hasPart: () => true,
      render: (one) => <Capture report={one.report} graph={one.graph} />,
      // Where tracing stopped is told even where it gave no graph at all.
      renderWithoutGraph: (whole) => (whole.compilations.length > 0 ? <Capture report={whole} graph={null} /> : null),
    },
    {
      id: "wrapper",
      label: "Wrapper",
      hasPart: (one) => one.graph.wrapper !== "",
      render: (one) => (one.graph.wrapper ? <CodeView label="Wrapper source" source={one.graph.wrapper} language="python" /> : <Empty>No wrapper was written.</Empty>),
    },
  ];
}

/** These speak of the whole report, and have something to say even where nothing was captured. */
function wholeReportViews(): { id: BottomTab; label: string; badge?: number | undefined; render(): ComponentChildren }[] {
  const shown = report.value;
  return [
    { id: "sweep", label: "Sweep", badge: shown?.sweep?.sizes.filter(isFlipping).length, render: () => <Sweep report={shown} /> },
    {
      id: "what-if",
      label: "What if",
      badge: shown?.what_if.length,
      render: () => (shown ? <WhatIf report={shown} /> : <Empty>Nothing has run yet.</Empty>),
    },
    { id: "stages", label: "Stages", render: () => (shown ? <Stages report={shown} /> : <Empty>Nothing has run yet.</Empty>) },
    { id: "notes", label: "Notes & output", badge: shown?.notes.length, render: () => (shown ? <Notes report={shown} /> : <Empty>Nothing has run yet.</Empty>) },
  ];
}

function withoutGraph(view: View): ComponentChildren {
  if (isRunning.value) return <Empty>This shows when a graph is captured.</Empty>;
  return (report.value && view.renderWithoutGraph?.(report.value)) || <Empty>No graph was captured.</Empty>;
}

export function Bottom() {
  const any = newestWith(() => true);
  const views = viewsOf(any);
  const whole = wholeReportViews();
  const selected = bottomTab.value;
  const view = views.find((candidate) => candidate.id === selected);
  const shown = view ? newestWith((graph, from) => view.hasPart({ graph, report: from, stale: false })) : null;
  return (
    <section class="pane" id="pane-bottom" data-pane="bottom" aria-label="Why and how fast" tabIndex={-1}>
      <div class="pane-bar">
        <Tabs
          name="bottom"
          label="Why and how fast"
          selected={selected}
          onSelect={(id) => (bottomTab.value = id)}
          tabs={[...views, ...whole].map(({ id, label, badge }) => ({ id, label, badge }))}
        />
      </div>
      <TabPanel name="bottom" selected={selected} stale={shown?.stale}>
        {view ? (shown ? view.render(shown) : withoutGraph(view)) : whole.find(({ id }) => id === selected)?.render()}
      </TabPanel>
    </section>
  );
}

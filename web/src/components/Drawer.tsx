import type { ComponentChildren } from "preact";
import { isNarrow } from "../layout";
import { isAsking } from "../lessons";
import { drawer, isRunning, newestWith, phoneTab, previous, report, type Shown } from "../state";
import { Empty } from "./Scroller";
import { type GraphView, type View, VIEWS } from "./views";

export function viewShown(): View | null {
  return VIEWS.find((view) => view.id === drawer.value) ?? null;
}

/** What would answer the question that is open. */
export const AfterTheAnswer = () => <Empty>This appears after your answer to the question.</Empty>;

function withoutGraph(view: GraphView): ComponentChildren {
  if (isRunning.value) return <Empty>This appears when a graph is captured.</Empty>;
  return (report.value && view.renderWithoutGraph?.(report.value)) || <Empty>No graph was captured.</Empty>;
}

/** What a view has to show now, and whether that is of the exploration before. */
function contentOf(view: View): { stale: boolean; content: ComponentChildren } {
  if (isAsking.value && !view.tellsNoAnswer) return { stale: false, content: <AfterTheAnswer /> };
  if (view.of === "graph") {
    const shown: Shown | null = newestWith((graph, from) => view.hasPart({ graph, report: from, stale: false }));
    return { stale: shown?.stale ?? false, content: shown ? view.render(shown) : withoutGraph(view) };
  }
  const whole = report.value ?? previous.value;
  return { stale: report.value === null, content: whole ? view.render(whole) : <Empty>Nothing has run yet.</Empty> };
}

/** Above the toolbar: the view whose word was clicked. */
export function Drawer() {
  const view = viewShown();
  if (!view) return isNarrow.value && phoneTab.value === "more" ? <Empty>Choose a view below.</Empty> : null;
  const { stale, content } = contentOf(view);
  return (
    <section class="pane" id="drawer" data-pane="drawer" data-view={view.id} aria-label={`Details: ${view.label}`} tabIndex={-1}>
      <div class="view" data-stale={stale || undefined}>
        {content}
      </div>
    </section>
  );
}

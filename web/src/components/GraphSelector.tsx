import { hiddenNow } from "../lessons";
import type { Graph } from "../report";
import { graphIndex, report } from "../state";

/** Its name, as sentences about several graphs use it, and what is in it. */
function nameOf(graph: Graph): string {
  const phase = graph.phase === "inference" ? null : graph.phase;
  const ending = graph.breaks.length > 0 ? "ends in a break" : graph.recompiles.length > 0 ? "a recompilation" : null;
  const about = [graph.function, phase, ending].filter(Boolean).join(", ");
  return about ? `${graph.name}: ${about}` : graph.name;
}

/** Which of a snippet's graphs the panes show; a snippet with one graph needs no choice. */
export function GraphSelector() {
  const graphs = report.value?.graphs ?? [];
  // How many there are may be what one is to guess.
  if (graphs.length < 2 || hiddenNow.value === "all") return null;
  return (
    <label class="field graph-field">
      <span>{`One of ${graphs.length} graphs`}</span>
      <select class="graph-select" value={graphIndex.value} onChange={(event) => (graphIndex.value = Number(event.currentTarget.value))}>
        {graphs.map((graph, index) => (
          <option key={graph.name} value={index}>
            {nameOf(graph)}
          </option>
        ))}
      </select>
    </label>
  );
}

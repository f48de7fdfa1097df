import { hiddenNow } from "../lessons";
import type { Graph } from "../report";
import { graphIndex, report } from "../state";

function nameOf(graph: Graph): string {
  const phase = graph.phase === "inference" ? "" : `, ${graph.phase}`;
  const ending = graph.breaks.length > 0 ? ", ends in a break" : graph.recompiles.length > 0 ? ", a recompilation" : "";
  return `${graph.function ?? graph.name}${phase}${ending}`;
}

/** Which of a snippet's graphs the panes show; a snippet with one graph needs no choice. */
export function GraphSelector() {
  const graphs = report.value?.graphs ?? [];
  // How many there are may be what one is to guess.
  if (graphs.length < 2 || hiddenNow.value === "all") return null;
  return (
    <label class="field graph-field">
      <span>Graph</span>
      <select class="graph-select" value={graphIndex.value} onChange={(event) => (graphIndex.value = Number(event.currentTarget.value))}>
        {graphs.map((graph, index) => (
          <option key={graph.name} value={index}>
            {`${index + 1} of ${graphs.length}: ${nameOf(graph)}`}
          </option>
        ))}
      </select>
    </label>
  );
}

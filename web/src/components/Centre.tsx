import { fxLevel, isRunning, newestWith } from "../state";
import { GraphMap } from "./GraphMap";
import { Empty } from "./Scroller";

export function Centre() {
  const shown = newestWith((graph) => graph.aten.length + graph.fx.length > 0);
  const graph = shown?.graph;
  const level = graph && graph.aten.length === 0 ? "fx" : fxLevel.value;
  return (
    <section class="pane" id="pane-map" data-pane="map" aria-label="Map" tabIndex={-1}>
      <div class="pane-bar">
        <h2>Map</h2>
        <div class="toggle" role="group" aria-label="Level of the graph">
          {(["aten", "fx"] as const).map((name) => (
            <button type="button" key={name} aria-pressed={level === name} onClick={() => (fxLevel.value = name)}>
              {name === "aten" ? "aten" : "dynamo"}
            </button>
          ))}
        </div>
      </div>
      <div class="view" data-stale={shown?.stale || undefined}>
        {graph ? (
          <GraphMap graph={graph} level={level} />
        ) : (
          <Empty>{isRunning.value ? "The graph shows here when it is captured." : "No graph was captured."}</Empty>
        )}
      </div>
    </section>
  );
}

import { centreTab, fxLevel, isRunning, newestWith } from "../state";
import { GraphMap } from "./GraphMap";
import { LoopList } from "./LoopList";
import { NodeTable } from "./NodeTable";
import { Empty } from "./Scroller";
import { TabPanel, Tabs } from "./Tabs";

export function Centre() {
  const shown = newestWith((graph) => (centreTab.value === "loops" ? graph.loops.length > 0 : graph.aten.length + graph.fx.length > 0));
  const graph = shown?.graph;
  const level = graph && graph.aten.length === 0 ? "fx" : fxLevel.value;
  return (
    <section class="pane" id="pane-centre" data-pane="centre" aria-label="Graph" tabIndex={-1}>
      <div class="pane-bar">
        <Tabs
          name="centre"
          label="Graph"
          selected={centreTab.value}
          onSelect={(id) => (centreTab.value = id)}
          tabs={[
            { id: "graph", label: "FX graph" },
            { id: "loops", label: "Loops", badge: graph?.loops.length },
            { id: "nodes", label: "Nodes", badge: level === "aten" ? graph?.aten.length : graph?.fx.length },
          ]}
        />
        {centreTab.value !== "loops" && (
          <div class="toggle" role="group" aria-label="Level of the graph">
            {(["aten", "fx"] as const).map((name) => (
              <button type="button" key={name} aria-pressed={level === name} onClick={() => (fxLevel.value = name)}>
                {name === "aten" ? "aten" : "dynamo"}
              </button>
            ))}
          </div>
        )}
      </div>
      <TabPanel name="centre" selected={centreTab.value} stale={shown?.stale}>
        {!graph ? (
          <Empty>{isRunning.value ? "The graph shows here when it is captured." : "No graph was captured."}</Empty>
        ) : centreTab.value === "graph" ? (
          <GraphMap graph={graph} level={level} />
        ) : centreTab.value === "loops" ? (
          <LoopList graph={graph} />
        ) : (
          <NodeTable graph={graph} level={level} />
        )}
      </TabPanel>
    </section>
  );
}

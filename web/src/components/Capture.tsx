import * as format from "../format";
import type { Graph, Report } from "../report";
import { Backward } from "./Backward";
import { Breaks } from "./Breaks";
import { Compilations } from "./Compilations";
import { Guards } from "./Guards";
import { Recompiles } from "./Recompiles";
import { Rewrites } from "./Rewrites";
import { Scroller } from "./Scroller";

function Heading({ report, graph }: { report: Report; graph: Graph | null }) {
  const recompiles = report.graphs.flatMap((one) => one.recompiles);
  const facts = [
    format.count(report.compilations.length, "compilation"),
    format.count(report.graphs.length, "graph"),
    format.count(report.breaks.length, "graph break"),
    format.count(recompiles.length, "recompilation"),
    graph ? `${format.count(graph.guards.length, "guard")} on ${graph.name}` : "",
  ];
  return <p class="note quiet">{facts.filter(Boolean).join(" · ")}</p>;
}

/** How the code was captured: where tracing stopped, what was compiled again, what is guarded, what is kept. */
export function Capture({ report, graph }: { report: Report; graph: Graph | null }) {
  const recompiles = report.graphs.flatMap((one) => one.recompiles);
  const whole = report.breaks.length === 0 && recompiles.length === 0;
  return (
    <Scroller label="How the code was captured" class="capture">
      <Heading report={report} graph={graph} />
      <div class="capture-columns">
        <div>
          {whole && report.graphs.length > 0 && <p class="note">No graph break and no recompilation: one graph serves every call.</p>}
          <Breaks breaks={report.breaks} />
          <Recompiles recompiles={recompiles} graphs={report.graphs} />
          {graph && <Rewrites rewrites={graph.rewrites} />}
          {graph && <Backward report={report} graph={graph} />}
        </div>
        <div>{graph && <Guards graph={graph} />}</div>
      </div>
      <Compilations compilations={report.compilations} />
    </Scroller>
  );
}

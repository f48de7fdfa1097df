/** A report that grows: what the server sends of it are its parts that changed, by their JSON pointers. */
import type { Graph, Report } from "./report";

export type Parts = Record<string, unknown>;

const IN_GRAPH = /^\/graphs\/(\d+)\/(\w+)$/;

/**
 * The report with `changed` in it; the one given stays as it is. `/graphs` alone is how many graphs there are, and of a
 * graph that is new every part is among those that changed.
 */
export function withParts(report: Report, changed: Parts): Report {
  const next = { ...report } as Report & Record<string, unknown>;
  const count = typeof changed["/graphs"] === "number" ? changed["/graphs"] : report.graphs.length;
  const graphs: Graph[] = Array.from({ length: count }, (_, place) => ({ ...report.graphs[place] }) as Graph);
  for (const [pointer, value] of Object.entries(changed)) {
    const inGraph = IN_GRAPH.exec(pointer);
    const graph = inGraph && graphs[Number(inGraph[1])];
    if (inGraph?.[2] && graph) Object.assign(graph, { [inGraph[2]]: value });
    else if (!inGraph && pointer !== "/graphs") next[pointer.slice(1)] = value;
  }
  next.graphs = graphs;
  return next;
}

/** The report as it is when the same exploration begins again: nothing that an earlier attempt found. */
export function begunAgain(report: Report): Report {
  return { ...report, stages: [], graphs: [], notes: [], breaks: [], peer: null, timing: null };
}

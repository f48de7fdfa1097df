import type { Graph, Report } from "../report";
import stored from "./report.json";

/** A whole report: a product, a softmax, a transposed read and a dead node. tests/web checks it against the contract. */
export const exampleReport = stored as unknown as Report;

const [first] = exampleReport.graphs;
if (!first) throw new Error("report.json has no graph");
export const exampleGraph: Graph = first;

import { ref } from "../links";
import type { Graph, Report } from "../report";
import { compilerShown } from "../state";
import { CodeView } from "./CodeView";
import { Empty } from "./Scroller";

/** The code that calls the kernels of a graph: ours, or the peer's where its kernels are shown. */
export function Wrapper({ graph, report }: { graph: Graph; report: Report }) {
  const peer = compilerShown.value === "peer" ? report.peer : null;
  const theirs = peer?.graphs.find((one) => one.graph === graph.name);
  if (peer && theirs) {
    const origins = new Map(theirs.launches.map(({ line, kernel }) => [line, { ref: ref.peer(kernel), userLines: peer.kernels[kernel]?.user_lines ?? [] }]));
    return <CodeView label={`Wrapper source of ${peer.name}`} source={theirs.wrapper} language="python" origins={origins} />;
  }
  return graph.wrapper ? <CodeView label="Wrapper source" source={graph.wrapper} language="python" /> : <Empty>No wrapper was written.</Empty>;
}

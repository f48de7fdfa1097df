import { edgeSentence } from "../moved";
import type { Graph } from "../report";
import { focusOfLight, refs } from "../state";

/** What the lines of the map mean; while one is pointed at or pinned, what it costs. */
export function EdgeCaption({ graph }: { graph: Graph }) {
  const focus = focusOfLight.value;
  const edge = focus?.startsWith("edge:") ? graph.traffic?.edges.find((one) => refs.value.edge(one.tensor, one.consumer) === focus) : undefined;
  return (
    <p class="map-caption">
      {edge ? (
        edgeSentence(edge)
      ) : (
        <>
          <span class="line-memory" aria-hidden="true" /> through memory <span class="line-register" aria-hidden="true" /> kept out of it
        </>
      )}
    </p>
  );
}

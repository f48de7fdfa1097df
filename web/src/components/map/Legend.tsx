import { edgeSentence } from "../../moved";
import { graphNameOf, refsOf } from "../../links";
import { focusOfLight } from "../../state";
import { compilersShown } from "./look";
import { frameOf } from "./places";

/** What the lines of the map mean; while one is pointed at or selected, what it costs. */
export function Legend({ hasRefusals, hasResults }: { hasRefusals: boolean; hasResults: boolean }) {
  const focus = focusOfLight.value;
  const graph = focus?.startsWith("edge:") ? frameOf(graphNameOf(focus))?.graph : undefined;
  const edge = graph?.traffic?.edges.find((one) => refsOf(graph).edge(one.tensor, one.consumer) === focus);
  return (
    <p class="map-caption">
      {edge ? (
        edgeSentence(edge)
      ) : (
        <>
          <span>
            <span class="key key-register" aria-hidden="true" /> stays in registers
          </span>
          <span>
            <span class="key key-memory" aria-hidden="true" /> through memory<span class="legend-more">, thicker with more bytes</span>
          </span>
          {hasRefusals && (
            <span>
              <span class="key key-refused" aria-hidden="true" /> refused
            </span>
          )}
          <span class="legend-more">
            <span class="key key-kernel" aria-hidden="true" /> a kernel
          </span>
          {compilersShown.value === "both" && (
            <span class="legend-more">
              <span class="key key-differs" aria-hidden="true" /> a kernel of TorchInductor that differs
            </span>
          )}
          {hasResults && (
            <span class="legend-more">
              <span class="key key-result" aria-hidden="true" /> a result of the graph
            </span>
          )}
        </>
      )}
    </p>
  );
}

import * as format from "../../format";
import type { Alignment, Difference } from "../../graph/peer";
import { pair, pinned } from "../../state";
import * as camera from "./camera";
import { boxOfNodes, frameOf } from "./places";

function goTo(one: Difference): void {
  const frame = frameOf(one.graph);
  const box = frame && boxOfNodes(frame, one.nodes);
  if (box) camera.show(box);
  if (one.pair) pair.value = { graph: one.graph, ...one.pair };
  else if (frame && one.ours[0] !== undefined) pinned.value = `kernel:${one.graph}/${one.ours[0]}`;
}

/** Where the two compilers cut differently, and the decision of ours that explains it; differences first. */
export function Differences({ alignment, peer }: { alignment: Alignment; peer: string }) {
  const { same, differences } = alignment;
  return (
    <section class="map-list" aria-label={`Differences from ${peer}`}>
      <p class="map-list-head">
        {differences.length === 0 ? `Both cut alike: ${format.count(same, "kernel")}` : `${format.count(differences.length, "difference")}, ${format.count(same, "kernel")} alike`}
      </p>
      <ol>
        {differences.map((one) => (
          <li key={`${one.graph} ${one.nodes[0]} ${one.kind}`}>
            <button type="button" class="plain" data-ref={one.decision ?? undefined} onClick={() => goTo(one)}>
              <span class="map-list-names">
                {one.count > 1 ? `${one.count} times: ` : ""}
                {one.sentence}
              </span>
              {one.because && <span class="map-list-reason">{one.because}</span>}
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

import * as format from "../../format";
import { refsOf } from "../../links";
import type { AlignedKernels, Graph, Peer } from "../../report";
import { pair, pinned } from "../../state";
import { Coded } from "../Coded";
import * as camera from "./camera";
import { boxOfNodes, frameOf } from "./places";

function goTo(one: AlignedKernels): void {
  const frame = frameOf(one.graph);
  const box = frame && boxOfNodes(frame, one.nodes);
  if (box) camera.show(box);
  if (one.pair) pair.value = { graph: one.graph, a: one.pair[0], b: one.pair[1] };
  else if (frame && one.ours[0] !== undefined) pinned.value = `kernel:${one.graph}/${one.ours[0]}`;
}

/** Where the two compilers cut differently, and the decision of ours that explains it; differences first. */
export function Differences({ peer, graphs }: { peer: Peer; graphs: readonly Graph[] }) {
  const same = peer.alignment.filter((one) => one.relation === "same").length;
  const told = peer.alignment.filter((one) => one.relation !== "same" && one.count > 0);
  return (
    <section class="map-list" aria-label={`Differences from ${peer.name}`}>
      <p class="map-list-head">
        {told.length === 0 ? `The same in both: ${format.count(same, "kernel")}` : `${format.count(told.length, "difference")}, ${format.count(same, "kernel")} alike`}
      </p>
      <ol>
        {told.map((one) => (
          <li key={`${one.graph} ${one.relation} ${one.ours[0]} ${one.theirs[0]}`}>
            <button type="button" class="plain" data-ref={one.decision === null ? undefined : refsOf({ name: one.graph }).decision(one.decision)} onClick={() => goTo(one)}>
              <span class="map-list-names">
                {one.count > 1 ? `${one.count} times: ` : ""}
                {one.sentence}
                {graphs.length > 1 && <span class="quiet">{` (${one.graph})`}</span>}
              </span>
              {one.because && <span class="map-list-reason"><Coded text={one.because} /></span>}
              {one.refusal && <span class="map-list-reason"><Coded text={`In its own words, ${one.refusal}.`} /></span>}
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

import * as format from "../../format";
import { cut } from "../../graph/map";
import type { Refusal } from "../../graph/refusals";
import { pair } from "../../state";
import { Worded } from "../Worded";
import { askAbout } from "./asking";
import * as camera from "./camera";
import { listAsked, listIsOpen, showLayer } from "./look";
import { boxOfPair, frameOf, operationOf } from "./places";

const NAME_AT_MOST = 22;

function goTo(refusal: Refusal): void {
  const frame = frameOf(refusal.graph);
  const operation = frame && operationOf(frame.graph, refusal.a);
  const [id, layer] = (operation && frame.map.layerOf(operation)?.split(":")) || [];
  if (id !== undefined) showLayer(refusal.graph, id, Number(layer));
  askAbout(refusal);
  const box = boxOfPair({ graph: refusal.graph, a: refusal.a, b: refusal.b });
  if (box) camera.show(box);
}

/** The refused pairs with most bytes at stake, at the map's edge. A click goes there and asks why. */
export function Costliest({ refusals }: { refusals: readonly Refusal[] }) {
  if (refusals.length === 0) return null;
  const isFolded = !listIsOpen();
  const asked = pair.value;
  return (
    <section class="map-list" aria-label="Costliest refusals">
      <button type="button" class="map-list-head" aria-expanded={!isFolded} onClick={() => (listAsked.value = isFolded ? "open" : "folded")}>
        {isFolded ? `Not fused: ${refusals.length}` : "Not fused, most bytes first"}
      </button>
      {!isFolded && (
        <ol>
          {refusals.map((refusal) => (
            <li key={refusal.ref}>
              <button
                type="button"
                class="plain"
                data-ref={refusal.ref}
                aria-pressed={asked?.graph === refusal.graph && asked.a === refusal.a && asked.b === refusal.b}
                title={format.sentence(refusal.decision.message)}
                onClick={() => goTo(refusal)}
              >
                <span class="map-list-names">
                  <code title={refusal.a}>{cut(refusal.a, NAME_AT_MOST)}</code> <span class="refused-mark">✕</span>
                  <span class="visually-hidden"> refused with </span> <code title={refusal.b}>{cut(refusal.b, NAME_AT_MOST)}</code>
                  {refusal.count > 1 && <span class="quiet">{` ${refusal.count} times`}</span>}
                </span>
                <span class="map-list-bytes" title="Bytes at stake">
                  {format.bytes(refusal.stake)}
                </span>
                <span class="map-list-reason">
                  <Worded text={refusal.decision.message} />
                </span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

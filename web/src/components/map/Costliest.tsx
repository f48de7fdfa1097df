import * as format from "../../format";
import { cut } from "../../graph/map";
import type { Refusal, RefusedPair } from "../../graph/refusals";
import { pair } from "../../state";
import { KernelTag } from "../KernelTag";
import { Worded } from "../Worded";
import { askAbout } from "./asking";
import * as camera from "./camera";
import { listAsked, listIsOpen, showLayer } from "./look";
import { boxOfPair, frameOf, operationOf } from "./places";

const NAME_AT_MOST = 16;

function goTo(refused: RefusedPair): void {
  const frame = frameOf(refused.graph);
  const operation = frame && operationOf(frame.graph, refused.a);
  const [id, layer] = (operation && frame.map.layerOf(operation)?.split(":")) || [];
  if (id !== undefined) showLayer(refused.graph, id, Number(layer));
  askAbout(refused);
  const box = boxOfPair({ graph: refused.graph, a: refused.a, b: refused.b });
  if (box) camera.show(box);
}

function isAsked({ graph, a, b }: RefusedPair): boolean {
  const asked = pair.value;
  return asked?.graph === graph && asked.a === a && asked.b === b;
}

function Side({ node, place }: { node: string; place?: number | undefined }) {
  return (
    <span class="map-list-side">
      {place !== undefined && <KernelTag place={place} />} <code title={node}>{cut(node, NAME_AT_MOST)}</code>
    </span>
  );
}

function noteOf({ count, where }: Refusal): string {
  return [where, count > 1 ? `${count} times` : ""].filter(Boolean).join(", ");
}

/** One pair of nodes: a click goes there and asks why. */
function Row({ refused, kernels, note, stake }: { refused: RefusedPair; kernels?: [number, number]; note?: string; stake?: number }) {
  return (
    <button type="button" class="plain" data-ref={refused.ref} aria-pressed={isAsked(refused)} title={format.sentence(refused.decision.message)} onClick={() => goTo(refused)}>
      <span class="map-list-names">
        <Side node={refused.a} place={kernels?.[0]} /> <span class="refused-mark">✕</span>
        <span class="visually-hidden"> refused with </span> <Side node={refused.b} place={kernels?.[1]} />
        {note && <span class="quiet">{` (${note})`}</span>}
      </span>
      {stake !== undefined && (
        <span class="map-list-bytes" title="Bytes at stake">
          {format.bytes(stake)}
        </span>
      )}
      <span class="map-list-reason">
        <Worded text={refused.decision.message} />
      </span>
    </button>
  );
}

/** Each two kernels that stayed apart, with what decided; the other pairs of their nodes on demand. */
export function Costliest({ refusals }: { refusals: readonly Refusal[] }) {
  if (refusals.length === 0) return null;
  const isFolded = !listIsOpen();
  return (
    <section class="map-list" aria-label="Costliest refusals">
      <button type="button" class="map-list-head" aria-expanded={!isFolded} onClick={() => (listAsked.value = isFolded ? "open" : "folded")}>
        {isFolded ? `Not fused: ${refusals.length}` : "Not fused, most bytes first"}
      </button>
      {!isFolded && (
        <ol>
          {refusals.map((refusal) => (
            <li key={refusal.ref}>
              <Row refused={refusal} kernels={refusal.kernels} note={noteOf(refusal)} stake={refusal.stake} />
              {refusal.others.length > 0 && (
                <details class="map-list-others">
                  <summary>{format.count(refusal.others.length, "pair")} of other nodes</summary>
                  {refusal.others.map((other) => (
                    <Row key={other.ref} refused={other} />
                  ))}
                </details>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

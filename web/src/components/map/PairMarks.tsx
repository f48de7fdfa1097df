import { pair } from "../../state";
import { boxOfNode, frameOf, operationOf } from "./places";

const ROOM = 4;

/** Frames the two nodes that the why card speaks of. */
export function PairMarks() {
  const asked = pair.value;
  const frame = asked && frameOf(asked.graph);
  if (!frame) return null;
  const ids = [asked.a, asked.b].flatMap((name) => frame.map.idOf.get(operationOf(frame.graph, name) ?? "") ?? []);
  return (
    <g class="pair-marks" aria-hidden="true">
      {[...new Set(ids)].map((id) => {
        const box = boxOfNode(frame, id);
        return box && <rect key={id} x={box.x - ROOM} y={box.y - ROOM} width={box.width + 2 * ROOM} height={box.height + 2 * ROOM} rx={8} />;
      })}
    </g>
  );
}

import { useMemo, useState } from "preact/hooks";
import * as format from "../../format";
import { edgeSentence, FATES, isSaved } from "../../moved";
import type { EdgeTraffic } from "../../report";
import { refs } from "../../state";

const ROWS_AT_FIRST = 60;

/** Every tensor with each of its readers, those that would cost most first. */
export function EdgeTable({ edges }: { edges: EdgeTraffic[] }) {
  const [limit, setLimit] = useState(ROWS_AT_FIRST);
  const rows = useMemo(() => [...edges].sort((one, other) => costOf(other) - costOf(one)), [edges]);
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">tensor</th>
            <th scope="col">read by</th>
            <th scope="col" class="number" title="Once for all who read it">
              its write
            </th>
            <th scope="col" class="number">this read</th>
            <th scope="col">with fusion</th>
            <th scope="col" class="number">bytes not read</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, limit).map((edge) => (
            <tr key={`${edge.tensor} ${edge.consumer}`} data-ref={refs.value.edge(edge.tensor, edge.consumer)} tabIndex={0} title={edgeSentence(edge)}>
              <th scope="row">{edge.tensor}</th>
              <td>
                <code>{edge.consumer}</code>
              </td>
              <td class="number">{edge.producer === null ? <span class="quiet">an input</span> : format.bytes(edge.written_bytes)}</td>
              <td class="number">{format.bytes(edge.read_bytes)}</td>
              <td>
                <span class={`fate ${isSaved(edge) ? "fate-register" : ""}`}>{FATES[edge.fate]}</span>
              </td>
              <td class="number">{edge.saved_read_bytes > 0 && format.bytes(edge.saved_read_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > limit && (
        <button type="button" class="show-all" onClick={() => setLimit(Number.POSITIVE_INFINITY)}>
          {`Show all ${rows.length}`}
        </button>
      )}
    </>
  );
}

function costOf(edge: EdgeTraffic): number {
  return edge.written_bytes + edge.read_bytes;
}

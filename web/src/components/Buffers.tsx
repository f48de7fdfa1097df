import * as format from "../format";
import { ref } from "../links";
import type { Buffer, Graph } from "../report";
import { Empty, Scroller } from "./Scroller";

const FATES: Record<Buffer["fate"], string> = {
  input: "input",
  output: "output",
  register: "in registers",
  reused: "reuses memory",
  in_place: "in place",
  allocated: "allocated",
  dead: "never computed",
};

/** A bar over the kernels that it lives through; a graph's inputs live from before the first. */
function Lifetime({ buffer, kernels }: { buffer: Buffer; kernels: number }) {
  if (buffer.first === null || buffer.last === null) return null;
  const from = Math.max(buffer.first, 0);
  const to = Math.min(buffer.last, kernels - 1);
  return (
    <svg class={`lifetime fate-${buffer.fate}`} viewBox={`0 0 ${Math.max(kernels, 1) * 10} 10`} preserveAspectRatio="none" aria-hidden="true">
      <rect class="lifetime-track" x={0} y={4.5} width={kernels * 10} height={1} />
      <rect class="lifetime-bar" x={from * 10 + 1} y={1.5} width={Math.max(8, (to - from + 1) * 10 - 2)} height={7} />
    </svg>
  );
}

function lifetimeText({ first, last }: Buffer): string {
  if (first === null || last === null) return "";
  if (first === last) return `K${first + 1}`;
  return `${first < 0 ? "start" : `K${first + 1}`} – K${last + 1}`;
}

export function Buffers({ graph }: { graph: Graph }) {
  if (graph.buffers.length === 0) return <Empty>No buffers are planned yet.</Empty>;
  const kept = graph.buffers.filter((buffer) => buffer.fate === "register").reduce((sum, buffer) => sum + buffer.bytes, 0);
  return (
    <Scroller label="Buffers">
      {kept > 0 && <p class="note">{`${format.bytes(kept)} never reach memory: they stay in registers.`}</p>}
      <table>
        <thead>
          <tr>
            <th scope="col">buffer</th>
            <th scope="col">fate</th>
            <th scope="col">shape</th>
            <th scope="col">stride</th>
            <th scope="col">dtype</th>
            <th scope="col" class="number">bytes</th>
            <th scope="col">lives</th>
            <th scope="col" class="lifetime-column">
              {graph.kernels.length > 0 && `K1 – K${graph.kernels.length}`}
            </th>
            <th scope="col">note</th>
          </tr>
        </thead>
        <tbody>
          {graph.buffers.map((buffer) => (
            <tr key={buffer.name} data-ref={ref.buffer(buffer.name)} tabIndex={0} class={buffer.fate === "dead" ? "dead" : ""}>
              <th scope="row">{buffer.name}</th>
              <td>
                <span class={`fate fate-${buffer.fate}`}>{FATES[buffer.fate]}</span>
              </td>
              <td class="nowrap">{format.shape(buffer.shape)}</td>
              <td class="nowrap quiet">{buffer.stride.join(", ")}</td>
              <td>{format.dtype(buffer.dtype)}</td>
              <td class="number">{format.bytes(buffer.bytes)}</td>
              <td class="nowrap">{lifetimeText(buffer)}</td>
              <td>
                <Lifetime buffer={buffer} kernels={graph.kernels.length} />
              </td>
              <td class="message">{buffer.note}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

import * as format from "../../format";
import type { Buffer } from "../../report";
import { Head } from "../Head";
import { refs } from "../../state";

const FATES: Record<Buffer["fate"], string> = {
  input: "input",
  output: "output",
  register: "in registers",
  reused: "reuses memory",
  in_place: "in place",
  allocated: "allocated",
  dead: "never computed",
};

/** Launches go by their number: K1, K2, … are our kernels, and without fusion each node is a launch. */
function lifetimeText({ first, last }: Buffer, launches: number, way: "fused" | "unfused"): string {
  if (first === null || last === null) return "";
  const name = (place: number): string => (place < 0 ? "start" : place >= launches ? "end" : way === "fused" ? `K${place + 1}` : `${place + 1}`);
  return first === last ? name(first) : `${name(first)} – ${name(last)}`;
}

/** Every buffer of a plan: the same as the chart above it, in words. */
export function BufferTable({ buffers, launches, way }: { buffers: Buffer[]; launches: number; way: "fused" | "unfused" }) {
  return (
    <table>
      <Head columns={["buffer", "fate", "in the memory of", "lives", "bytes", "shape", "stride", "dtype"]} numbers={["bytes"]} />
      <tbody>
        {buffers.map((buffer) => (
          <tr key={buffer.name} data-ref={refs.value.buffer(buffer.name)} tabIndex={0} class={buffer.fate === "dead" ? "dead" : ""}>
            <th scope="row">{buffer.name}</th>
            <td>
              <span class={`fate fate-${buffer.fate}`}>{FATES[buffer.fate]}</span>
            </td>
            <td>{buffer.takes_over && <code>{buffer.takes_over}</code>}</td>
            <td class="nowrap">{lifetimeText(buffer, launches, way)}</td>
            <td class="number">{format.bytes(buffer.bytes)}</td>
            <td class="nowrap">{format.shape(buffer.shape)}</td>
            <td class="nowrap quiet">{buffer.stride.join(", ")}</td>
            <td>{format.dtype(buffer.dtype)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

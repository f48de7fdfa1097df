import * as format from "../../format";
import type { Buffer } from "../../report";
import { refs } from "../../state";
import { Name } from "../Name";
import { Table } from "./Table";

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
    <Table
      id="buffers"
      label="Buffers"
      rows={buffers}
      keyOf={(buffer) => buffer.name}
      refOf={(buffer) => refs.value.buffer(buffer.name)}
      classOf={(buffer) => (buffer.fate === "dead" ? "dead" : "")}
      groups={[{ id: "fate", label: "fate", of: (buffer) => FATES[buffer.fate] }]}
      columns={[
        { id: "name", head: "buffer", by: (buffer) => buffer.name, cell: (buffer) => <Name text={buffer.name} /> },
        { id: "fate", head: "fate", by: (buffer) => FATES[buffer.fate], cell: (buffer) => <span class={`fate fate-${buffer.fate}`}>{FATES[buffer.fate]}</span> },
        { id: "over", head: "in the memory of", isExtra: true, by: (buffer) => buffer.takes_over, cell: (buffer) => buffer.takes_over && <Name text={buffer.takes_over} /> },
        { id: "lives", head: "lives", by: (buffer) => buffer.first, cell: (buffer) => <span class="nowrap">{lifetimeText(buffer, launches, way)}</span> },
        { id: "bytes", head: "bytes", isNumber: true, by: (buffer) => buffer.bytes, cell: (buffer) => format.bytes(buffer.bytes) },
        { id: "shape", head: "shape", cell: (buffer) => <span class="nowrap">{format.shape(buffer.shape)}</span> },
        { id: "stride", head: "stride", isExtra: true, cell: (buffer) => <span class="nowrap quiet">{buffer.stride.join(", ")}</span> },
        { id: "dtype", head: "dtype", isExtra: true, by: (buffer) => buffer.dtype, cell: (buffer) => format.dtype(buffer.dtype) },
      ]}
    />
  );
}

import { useMemo } from "preact/hooks";
import * as format from "../../format";
import { edgeSentence, FATES, isSaved } from "../../moved";
import type { EdgeTraffic } from "../../report";
import { pair, refs, shownGraph } from "../../state";
import { Name } from "../Name";
import { Table } from "./Table";

/** Every tensor with each of its readers, those that would cost most first. */
export function EdgeTable({ edges }: { edges: EdgeTraffic[] }) {
  const rows = useMemo(() => [...edges].sort((one, other) => costOf(other) - costOf(one)), [edges]);
  return (
    <Table
      id="edges"
      label="Tensors and their readers"
      rows={rows}
      keyOf={(edge) => `${edge.tensor} ${edge.consumer}`}
      refOf={(edge) => refs.value.edge(edge.tensor, edge.consumer)}
      hintOf={edgeSentence}
      groups={[{ id: "fate", label: "result of fusion", of: (edge) => FATES[edge.fate] }]}
      columns={[
        { id: "tensor", head: "tensor", by: (edge) => edge.tensor, cell: (edge) => <Name text={edge.tensor} /> },
        { id: "reader", head: "read by", by: (edge) => edge.consumer, cell: (edge) => <Name text={edge.consumer} /> },
        {
          id: "write",
          head: "its write",
          hint: "Once for all its readers",
          isNumber: true,
          by: (edge) => (edge.producer === null ? null : edge.written_bytes),
          cell: (edge) => (edge.producer === null ? <span class="quiet">an input</span> : format.bytes(edge.written_bytes)),
        },
        { id: "read", head: "this read", isNumber: true, by: (edge) => edge.read_bytes, cell: (edge) => format.bytes(edge.read_bytes) },
        { id: "fate", head: "with fusion", by: (edge) => FATES[edge.fate], cell: (edge) => <Fate edge={edge} /> },
        { id: "saved", head: "bytes not read", isNumber: true, by: (edge) => edge.saved_read_bytes, cell: (edge) => edge.saved_read_bytes > 0 && format.bytes(edge.saved_read_bytes) },
      ]}
    />
  );
}

/** What became of it; of two nodes a click tells why. */
function Fate({ edge }: { edge: EdgeTraffic }) {
  const { producer, consumer } = edge;
  const told = <span class={`fate ${isSaved(edge) ? "fate-register" : ""}`}>{FATES[edge.fate]}</span>;
  if (producer === null) return told;
  return (
    <button type="button" class="plain" title={`Why ${producer} and ${consumer} are, or are not, in one kernel`} onClick={() => (pair.value = { graph: shownGraph.value?.name ?? "", a: producer, b: consumer })}>
      {told} <span class="link">why</span>
    </button>
  );
}

function costOf(edge: EdgeTraffic): number {
  return edge.written_bytes + edge.read_bytes;
}

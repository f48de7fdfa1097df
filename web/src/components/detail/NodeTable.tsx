import * as format from "../../format";
import { shortTarget } from "../../graph/map";
import type { FxNode, Graph } from "../../report";
import { links, refs } from "../../state";
import { KernelTag } from "../KernelTag";
import { Scroller } from "../Scroller";
import { Name } from "../Name";
import { type Column, Table } from "./Table";

/** What a node has to do with the other pass of training. */
function roleOf(node: FxNode, graph: Graph): string {
  if (graph.recomputed.includes(node.name)) return "computed again";
  return graph.saved.some((saved) => saved.input === node.name) ? "saved" : "";
}

/** The target of an input is its name. */
function operationOf(node: FxNode): string {
  return node.op === "placeholder" ? "input" : shortTarget(node);
}

export function NodeTable({ graph, level }: { graph: Graph; level: "aten" | "fx" }) {
  const isAten = level === "aten";
  const toRef = isAten ? refs.value.aten : refs.value.fx;
  const kernelsOf = (node: FxNode): number[] => links.value.numbersOf(toRef(node.name), "kernel");
  const columns: Column<FxNode>[] = [
    {
      id: "name",
      head: "node",
      by: (node) => node.name,
      cell: (node) => {
        const role = isAten ? roleOf(node, graph) : "";
        return (
          <>
            <Name text={node.name} /> {role && <span class="chip">{role}</span>}
          </>
        );
      },
    },
    { id: "kernel", head: "kernel", by: (node) => kernelsOf(node)[0] ?? null, cell: (node) => (node.dead ? "dead" : kernelsOf(node).map((place) => <KernelTag key={place} place={place} />)) },
    { id: "target", head: "operation", by: operationOf, cell: (node) => <Name text={operationOf(node)} /> },
    { id: "line", head: "line", isNumber: true, by: (node) => node.lines[0] ?? null, cell: (node) => node.lines.join(", ") },
    { id: "shape", head: "shape", cell: (node) => <span class="nowrap">{format.shape(node.shape)}</span> },
    { id: "dtype", head: "dtype", isExtra: true, by: (node) => node.dtype, cell: (node) => format.dtype(node.dtype) },
    { id: "bytes", head: "bytes", isNumber: true, by: (node) => node.bytes, cell: (node) => format.bytes(node.bytes) },
    { id: "from", head: "from", isExtra: true, class: "wide", cell: (node) => node.args.join(", ") },
  ];
  return (
    <Scroller label="Nodes of the graph">
      <Table
        id="nodes"
        label={isAten ? "Operations of the graph" : "Nodes as Dynamo captured them"}
        columns={columns}
        rows={isAten ? graph.aten : graph.fx}
        keyOf={(node) => node.name}
        refOf={(node) => toRef(node.name)}
        classOf={(node) => (node.dead ? "dead" : "")}
        hintOf={(node) => node.text}
        groups={[
          { id: "kernel", label: "kernel", of: (node) => kernelsOf(node).map((place) => `K${place + 1}`).join(", ") },
          { id: "module", label: "module", of: (node) => node.module ?? "" },
          { id: "line", label: "line", of: (node) => node.lines.join(", ") },
        ]}
      />
    </Scroller>
  );
}

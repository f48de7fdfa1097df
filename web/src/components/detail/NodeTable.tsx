import * as format from "../../format";
import { shortTarget } from "../../graph/map";
import type { FxNode, Graph } from "../../report";
import { links, refs } from "../../state";
import { Head } from "../Head";
import { KernelTag } from "../KernelTag";
import { Scroller } from "../Scroller";

/** What a node has to do with the other pass of training. */
function roleOf(node: FxNode, graph: Graph): string {
  if (graph.recomputed.includes(node.name)) return "computed again";
  return graph.saved.some((saved) => saved.input === node.name) ? "saved" : "";
}

function Row({ node, item, role }: { node: FxNode; item: string; role: string }) {
  const kernels = links.value.numbersOf(item, "kernel");
  return (
    <tr data-ref={item} class={node.dead ? "dead" : ""} tabIndex={0} title={node.text}>
      <th scope="row">
        {node.name} {role && <span class="chip">{role}</span>}
      </th>
      <td>{node.dead ? "dead" : kernels.map((place) => <KernelTag key={place} place={place} />)}</td>
      <td>{shortTarget(node)}</td>
      <td>{node.lines.join(", ")}</td>
      <td class="nowrap">{format.shape(node.shape)}</td>
      <td>{format.dtype(node.dtype)}</td>
      <td class="number">{format.bytes(node.bytes)}</td>
      <td>{node.args.join(", ")}</td>
    </tr>
  );
}

export function NodeTable({ graph, level }: { graph: Graph; level: "aten" | "fx" }) {
  const nodes = level === "aten" ? graph.aten : graph.fx;
  const toRef = level === "aten" ? refs.value.aten : refs.value.fx;
  return (
    <Scroller label="Nodes of the graph">
      <table>
        <Head columns={["node", "kernel", "target", "line", "shape", "dtype", "bytes", "from"]} />
        <tbody>
          {nodes.map((node) => (
            <Row key={node.name} node={node} item={toRef(node.name)} role={level === "aten" ? roleOf(node, graph) : ""} />
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

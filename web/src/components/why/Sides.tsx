import * as format from "../../format";
import { loopsBehind, refsOf } from "../../links";
import type { Decision, Graph, IndexTerm, Side } from "../../report";
import { Name } from "../Name";
import { bytesOf, dtypeOf } from "./answers";

/** An index expression; the terms that the other side does not have are marked. */
export function Index({ terms }: { terms: IndexTerm[] }) {
  return (
    <code>
      {terms.map(({ text, differs }, place) => (differs ? <mark key={place}>{text}</mark> : text))}
    </code>
  );
}

interface Row {
  name: string;
  of(side: Side, node: string): preact.ComponentChildren;
}

function rowsOf({ shared }: Decision, graph: Graph): Row[] {
  return [
    { name: "iteration space", of: ({ space }) => (space ? <code>{space}</code> : "a library call") },
    { name: "iterations", of: ({ iterations }) => (typeof iterations === "number" ? iterations.toLocaleString("en-US") : iterations && <code>{iterations}</code>) },
    {
      name: shared ?? "shared buffer",
      of: ({ does, index }) => (
        <>
          {does}
          {index.length > 0 && (
            <>
              {" at "}
              <Index terms={index} />
            </>
          )}
        </>
      ),
    },
    { name: "bytes of it", of: ({ does }, node) => format.bytes(bytesOf(node, does, shared, graph)) },
    { name: "dtype", of: (_, node) => format.dtype(dtypeOf(node, graph)) },
  ];
}

/** Both sides beside each other, as they were when the scheduler asked. */
export function Sides({ decision, graph }: { decision: Decision; graph: Graph }) {
  const [one, two] = decision.sides;
  if (!one || !two) return null;
  const refs = refsOf(graph);
  const head = (name: string): preact.JSX.Element => (
    <th scope="col" data-ref={refs.loop(loopsBehind(name, graph).at(-1) ?? name)}>
      <Name text={name} />
    </th>
  );
  const rows = rowsOf(decision, graph)
    .map(({ name, of }) => ({ name, cells: [of(one, decision.a), of(two, decision.b)] }))
    .filter(({ cells }) => cells.some(Boolean));
  return (
    <table class="why-sides">
      <caption class="visually-hidden">Both sides of the decision</caption>
      <thead>
        <tr>
          <td />
          {head(decision.a)}
          {head(decision.b)}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, cells }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{cells[0] || <span class="quiet">–</span>}</td>
            <td>{cells[1] || <span class="quiet">–</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

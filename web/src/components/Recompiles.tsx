import { refOfLine } from "../links";
import type { Graph, Recompile } from "../report";
import { GraphLinks } from "./GraphLinks";
import { Worded } from "./Worded";

/** What the new graph serves: values newly left open, those that were open before, or this one value. */
function servedBy(found: Recompile, graphs: Graph[]): string {
  const quoted = (names: string[]): string => names.map((name) => `\`${name}\``).join(", ");
  if (found.symbolic.length > 0) return `, which leaves open ${quoted(found.symbolic)}`;
  const open = graphs.find((graph) => graph.name === found.graph)?.symbols.map((symbol) => symbol.source) ?? [];
  return open.length > 0 ? `, where ${quoted(open)} stays open` : ", for this value alone";
}

export function Recompiles({ recompiles, graphs }: { recompiles: Recompile[]; graphs: Graph[] }) {
  return (
    <>
      {recompiles.map((found, index) => (
        <div class="finding" key={index} data-ref={refOfLine(found.line)} tabIndex={0}>
          <p>
            <strong>{`${found.function} compiled again`}</strong>
            {found.line !== null && <span class="chip">{`line ${found.line}`}</span>}
          </p>
          <p>
            <Worded text={found.reason} />
          </p>
          <p class="quiet">
            {found.graph !== null && <GraphLinks before="made" names={[found.graph]} />}
            <Worded text={servedBy(found, graphs)} />
          </p>
        </div>
      ))}
    </>
  );
}

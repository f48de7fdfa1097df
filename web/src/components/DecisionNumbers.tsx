import * as format from "../format";
import type { Decision, IndexTerm, Side } from "../report";
import { Facts } from "./Facts";
import { WhatIfButtons } from "./WhatIfButtons";

function readable(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map(format.plain).join(", ");
  if (typeof value !== "number") return format.plain(value);
  if (name.startsWith("bytes")) return format.bytes(value);
  if (name.endsWith("_us")) return format.microseconds(value);
  return value.toLocaleString("en-US");
}

/** An index expression; the terms that the other side does not have are marked. */
export function Index({ terms }: { terms: IndexTerm[] }) {
  return (
    <code>
      {terms.map(({ text, differs }, place) => (differs ? <mark key={place}>{text}</mark> : text))}
    </code>
  );
}

function SideRow({ name, side, shared }: { name: string; side: Side; shared: string | null }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{side.space ? `loops ${side.space}` : "a library call"}</td>
      <td class="number">{side.iterations === null ? "" : `${readable("", side.iterations)} iterations`}</td>
      <td>
        {side.index.length > 0 && (
          <>
            {`${side.does} ${shared ?? ""} at `}
            <Index terms={side.index} />
          </>
        )}
      </td>
    </tr>
  );
}

/** What the verdict rests on: both sides beside each other, and what differs marked where that may be why not. */
export function DecisionNumbers({ decision }: { decision: Decision }) {
  const { sides, shared } = decision;
  const facts: [string, string][] = Object.entries(decision.numbers).map(([key, value]) => [
    key.replace(/_us$/, ", predicted").replaceAll("_", " "),
    readable(key, value),
  ]);
  if (decision.change) facts.push(["change of loops", decision.change]);
  return (
    <div class="why">
      {sides.length === 2 && (
        <table class="compact">
          <tbody>
            <SideRow name={decision.a} side={sides[0] as Side} shared={shared} />
            <SideRow name={decision.b} side={sides[1] as Side} shared={shared} />
          </tbody>
        </table>
      )}
      <p>
        <WhatIfButtons pair={[decision.a, decision.b]} verdict={decision.verdict} />
      </p>
      {decision.would_fuse_if && <p>{`It would fuse if ${decision.would_fuse_if}.`}</p>}
      <Facts facts={facts} />
    </div>
  );
}

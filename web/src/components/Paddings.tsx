import * as format from "../format";
import type { Graph, PaddingDecision } from "../report";

function copies({ copies }: PaddingDecision): string {
  return copies.length === 0 ? "" : ` Copied: ${copies.map(({ node, what }) => `${node} (${what})`).join(", ")}.`;
}

function saved({ verdict, predicted_saved_us }: PaddingDecision): string {
  if (predicted_saved_us === null) return "";
  return ` Predicted to ${verdict === "kept" ? "have saved" : "save"} ${predicted_saved_us.toFixed(1)} us.`;
}

const WAYS: Record<PaddingDecision["verdict"], string> = {
  padded: "is padded",
  apart: "is computed with padded rows",
  kept: "is computed as written",
};

/** Products whose sizes eight does not divide: which got a border of zeros, and why, each with its lines. */
export function Paddings({ graph }: { graph: Graph }) {
  const { paddings } = graph;
  if (paddings.length === 0) return null;
  const padded = paddings.filter(({ verdict }) => verdict === "padded").length;
  const apart = paddings.filter(({ verdict }) => verdict === "apart").length;
  return (
    <details class="removed">
      <summary>{`${padded} of ${paddings.length} ${paddings.length === 1 ? "product" : "products"} of odd sizes padded${apart > 0 ? `, ${apart} computed with padded rows` : ""}`}</summary>
      <ul>
        {paddings.map((one, place) => (
          <li key={place}>
            <code>{one.product}</code>
            {` ${WAYS[one.verdict]} (${one.reason}${one.lines.length > 0 ? `, line ${one.lines.join(", ")}` : ""}): ${format.sentence(one.message)}.${saved(one)}${copies(one)}`}
          </li>
        ))}
      </ul>
    </details>
  );
}

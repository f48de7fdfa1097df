import * as format from "../format";
import type { Graph, LayoutDecision } from "../report";

const laidOut = { kept: "as in eager", channels_last: "channels-last", product: "as a product", loop: "as a loop" };

function figures({ verdict, predicted_kept_us, predicted_moved_us, conversions }: LayoutDecision): string {
  if (predicted_kept_us === null || predicted_moved_us === null || verdict === "product") return "";
  const bytes = conversions.reduce((sum, conversion) => sum + conversion.bytes, 0);
  return ` ${format.count(conversions.length, "conversion")} of ${format.bytes(bytes)} in all.`;
}

/** How tensors lie around convolutions, and what is folded into them, each with its lines. */
export function Layouts({ graph }: { graph: Graph }) {
  const { layouts, foldings } = graph;
  if (layouts.length === 0) return null;
  return (
    <details class="removed">
      <summary>{`layout of ${format.count(layouts.length, "group")} of convolutions`}</summary>
      <ul>
        {layouts.map((one, place) => (
          <li key={place}>
            <code>{one.convolutions.join(", ")}</code>
            {` ${laidOut[one.verdict]} (${one.reason}${one.lines.length > 0 ? `, line ${one.lines.join(", ")}` : ""}): ${format.sentence(one.message)}.${figures(one)}`}
          </li>
        ))}
        {foldings.map((one, place) => (
          <li key={`folding ${place}`}>
            <code>{one.nodes[0]}</code>
            {` ${one.verdict === "folded" ? "takes the operations up to" : "does not take the operations up to"} `}
            <code>{one.nodes[one.nodes.length - 1]}</code>
            {` (${one.reason}${one.lines.length > 0 ? `, line ${one.lines.join(", ")}` : ""}): ${format.sentence(one.message)}.`}
          </li>
        ))}
      </ul>
    </details>
  );
}

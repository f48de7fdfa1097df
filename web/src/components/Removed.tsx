import type { Graph } from "../report";

/** What became no loop, since there was nothing to do, each with its line. */
export function Removed({ graph }: { graph: Graph }) {
  const { removed } = graph;
  if (removed.length === 0) return null;
  return (
    <details class="removed">
      <summary>{`no work for ${removed.length} ${removed.length === 1 ? "node" : "nodes"}`}</summary>
      <ul>
        {removed.map((one, place) => (
          <li key={place}>
            <code>{one.node}</code>
            {` (${one.kind.replaceAll("_", " ")}${one.lines.length > 0 ? `, line ${one.lines.join(", ")}` : ""}): ${one.because}`}
          </li>
        ))}
      </ul>
    </details>
  );
}

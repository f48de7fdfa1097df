import { ref } from "../links";
import type { Graph, Report } from "../report";
import { Scroller } from "./Scroller";

/** A thing about one line is lit with that line. */
function lineRef(line: number | null | undefined): string | undefined {
  return line == null ? undefined : ref.line(line);
}

export function Guards({ report, graph }: { report: Report; graph: Graph }) {
  const breaks = report.graphs.flatMap((one) => one.breaks.map((found) => ({ ...found, graph: one.name })));
  const recompiles = report.graphs.flatMap((one) => one.recompiles.map((found) => ({ ...found, graph: one.name })));
  return (
    <Scroller label="Guards and graph breaks" class="guards">
      {breaks.length === 0 && recompiles.length === 0 && <p class="note">No graph break and no recompilation: one graph serves every call.</p>}
      {breaks.map((found, index) => (
        <div class="finding finding-break" key={index} data-ref={lineRef(found.line)} tabIndex={0}>
          <strong>Graph break</strong>
          {found.line !== null && ` at line ${found.line}`} <span class="quiet">{`ends ${found.graph}`}</span>
          {found.kind && <code>{found.kind}</code>}
          <p>{found.reason}</p>
          {found.hint && <p class="hint">{found.hint}</p>}
        </div>
      ))}
      {recompiles.map((found, index) => (
        <div class="finding" key={index} data-ref={lineRef(found.line)} tabIndex={0}>
          <strong>{`Recompiled ${found.function}`}</strong>
          {found.line !== null && ` at line ${found.line}`} <span class="quiet">{`made ${found.graph}`}</span>
          <p>{found.reason}</p>
        </div>
      ))}
      {graph.guards.length > 0 && (
        <table>
          <caption>{`Guards of ${graph.name}: while these hold, this graph is used`}</caption>
          <thead>
            <tr>
              <th scope="col">guards</th>
              <th scope="col">kind</th>
              <th scope="col">expression</th>
              <th scope="col" class="number">line</th>
            </tr>
          </thead>
          <tbody>
            {graph.guards.map((guard, index) => (
              <tr key={index} data-ref={lineRef(guard.lines[0])} tabIndex={0}>
                <th scope="row">{guard.name}</th>
                <td>{guard.kind}</td>
                <td class="message">
                  <code>{guard.expression}</code>
                </td>
                <td class="number">{guard.lines.join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Scroller>
  );
}

import { refOfLine } from "../links";
import type { Graph } from "../report";
import { Head } from "./Head";
import { Worded } from "./Worded";

/** Which change of a call makes Dynamo compile anew, first the ones that the snippet's own lines speak of. */
export function Guards({ graph }: { graph: Graph }) {
  if (graph.guards.length === 0 && graph.symbols.length === 0) {
    return graph.phase === "backward" ? <p class="note quiet">A backward graph runs whenever its forward graph ran: it has no guards.</p> : null;
  }
  return (
    <>
      {graph.symbols.map((symbol) => (
        <p class="note" key={symbol.name} data-ref={refOfLine(symbol.line)} tabIndex={0}>
          <code>{symbol.source}</code>
          {` is left open (${symbol.name}): ${symbol.range || "any"}`}
          {symbol.value !== null && <span class="quiet">{`, ${symbol.value} when it was traced`}</span>}
        </p>
      ))}
      <table class="guards">
        <caption>{`${graph.name} is used until a call comes with`}</caption>
        <Head columns={["change", "checked as", "line"]} numbers={["line"]} />
        <tbody>
          {graph.guards.map((guard, index) => (
            <tr key={index} data-ref={refOfLine(guard.lines.at(-1))} tabIndex={0}>
              <td class="message">
                <Worded text={guard.fails_when || guard.subject || guard.name} />
              </td>
              <td class="checked quiet" title={guard.kind}>
                {guard.expression}
              </td>
              <td class="number">{guard.lines.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

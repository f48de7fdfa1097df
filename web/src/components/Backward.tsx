import * as format from "../format";
import type { Graph, Report, SavedTensor } from "../report";
import { GraphLinks } from "./GraphLinks";
import { Head } from "./Head";
import { refs } from "../state";

const KINDS: Record<SavedTensor["kind"], string> = {
  input: "an input, kept anyway",
  output: "a result, kept anyway",
  activation: "kept only for this",
};

/** What passes from a forward graph to its backward graph; the same list whichever of the two is shown. */
/** Results and gradients of the whole function, each error against float64. */
function Checks({ report, graph }: { report: Report; graph: Graph }) {
  const checks = report.gradients.filter((check) => check.entry === graph.function || report.graphs.length <= 2);
  if (checks.length === 0) return null;
  return (
    <table class="checks">
      <caption>Checked from end to end against the snippet's own function in float64</caption>
      <Head columns={["what", "error, compiled", "eager", "allowed", "verdict"]} numbers={["error, compiled", "eager", "allowed"]} />
      <tbody>
        {checks.map((check) => (
          <tr key={check.name}>
            <th scope="row">{check.name}</th>
            <td class="number">{format.scientific(check.compiled_error)}</td>
            <td class="number">{format.scientific(check.eager_error)}</td>
            <td class="number">{format.scientific(check.allowed_error)}</td>
            <td>{check.is_correct ? "right" : <span class="chip chip-bad">wrong</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Backward({ report, graph }: { report: Report; graph: Graph }) {
  const partner = report.graphs.find((one) => one.name === graph.partner);
  if (!partner) return null;
  const isBackward = graph.phase === "backward";
  const backward = isBackward ? graph : partner;
  const kept = backward.saved.filter((saved) => saved.kind === "activation").reduce((sum, saved) => sum + saved.bytes, 0);
  return (
    <section class="training" aria-label="Saved for the backward pass">
      <p class="note">
        <strong>Training</strong> <GraphLinks before={isBackward ? "the backward graph of" : "differentiated by"} names={[partner.name]} />
        <span class="quiet">{` ${format.bytes(kept) || "0 B"} kept between them, ${format.count(backward.recomputed.length, "operator")} computed again`}</span>
      </p>
      {backward.recomputed.length > 0 && (
        <p class="note again">
          <span class="quiet">computed again, not saved: </span>
          {backward.recomputed.map((name) => (
            <code key={name} class="chip" data-ref={refs.value.aten(name)} tabIndex={0}>
              {name}
            </code>
          ))}
        </p>
      )}
      <table>
        <Head columns={["saved", "what it is", "shape", "dtype", "bytes", "line"]} numbers={["bytes", "line"]} />
        <tbody>
          {backward.saved.map((saved) => (
            <tr key={saved.input} data-ref={refs.value.aten(isBackward ? saved.input : saved.node)} tabIndex={0} class={`saved-${saved.kind}`}>
              <th scope="row">{saved.node}</th>
              <td>{KINDS[saved.kind]}</td>
              <td class="nowrap">{format.shape(saved.shape)}</td>
              <td>{format.dtype(saved.dtype)}</td>
              <td class="number">{format.bytes(saved.bytes)}</td>
              <td class="number">{saved.lines.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Checks report={report} graph={graph} />
    </section>
  );
}

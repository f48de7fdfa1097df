import type { Answer } from "../../api";
import { isEmbedded } from "../../embed";
import { open, pathOf } from "../../explore";
import type { Graph, Report, WhatIf } from "../../report";
import { beside, comparedWith, isRunning, openView, pair, report } from "../../state";
import { ask, outcomeOf, type Pair, withPair, directivesOf } from "../../whatIf";
import { Worded } from "../Worded";
import { isAboutCorrectness, whyNotForce } from "./answers";
import { told } from "./changes";
import { ReasonName } from "./ReasonPage";

function takeBack(to: string): void {
  history.pushState(null, "", pathOf(to) + location.search);
  void open(to);
}

/** The card would lie over the comparison. */
function compareBoth(): void {
  pair.value = null;
  openView("compare");
}

/** What changed beside the exploration before: counted, measured, predicted. */
export function ChangeLine() {
  const found = beside.value;
  if (!found) return <p class="quiet">Comparing with the exploration before.</p>;
  return (
    <p class="why-change" data-testid="change">
      {found.differences.map((one) => (
        <span key={one} class="warn">
          {`${one} `}
        </span>
      ))}
      {told(found).map(({ text, isPredicted }, place) => (
        <span key={place}>
          {place > 0 && ", "}
          {isPredicted ? <em>{text}</em> : <b>{text}</b>}
        </span>
      ))}
    </p>
  );
}

function Outcome({ told: { option, outcome, message, reason }, shown }: { told: WhatIf; shown: Report }) {
  const word = option === "force" ? "Forced" : "Forbidden";
  const isBesideParent = comparedWith.value === null || comparedWith.value === shown.based_on;
  return (
    <div class="why-tried" data-outcome={outcome === "done" ? "done" : "refused"} role="status">
      <p>
        <b>{outcome === "done" ? `${word}.` : outcome === "refused" ? `${word}, and refused:` : `${word}, without effect:`}</b>{" "}
        {outcome !== "done" && (
          <>
            <Worded text={message} /> {reason && <ReasonName id={reason} />}
          </>
        )}
      </p>
      {shown.based_on !== null && isBesideParent && <ChangeLine />}
      <p class="why-buttons">
        {shown.based_on !== null && (
          <button type="button" onClick={() => takeBack(shown.based_on ?? "")} disabled={isRunning.value}>
            Take it back
          </button>
        )}
        <button type="button" onClick={compareBoth}>
          Compare both
        </button>
      </p>
    </div>
  );
}

/** The other verdict, tried on the two nodes; and what came of it. The card stays where it is meanwhile. */
export function Try({ answer, graph }: { answer: Answer; graph: Graph | null }) {
  const shown = report.value;
  const nodes: Pair = [answer.a, answer.b];
  if (isRunning.value) {
    return (
      <p class="why-tried" role="status">
        <span class="spinner" aria-hidden="true" /> Exploring with the change. The rest of this card is of the version before, until the answer is known.
      </p>
    );
  }
  if (!shown?.id || isEmbedded()) return null;
  const outcome = outcomeOf(shown, nodes);
  if (outcome) return <Outcome told={outcome} shown={shown} />;
  const option = answer.verdict === "fused" ? "forbid" : "force";
  const whyNot = whyNotForce(answer, graph);
  if (whyNot !== null) return <p class="quiet">{whyNot}</p>;
  return (
    <p class="why-buttons">
      <button type="button" class="primary" onClick={() => void ask(withPair(directivesOf(shown), option, nodes))}>
        {option === "force" ? "Force this fusion" : "Forbid this fusion"}
      </button>
      <span class="quiet">
        {option === "forbid"
          ? "Explores again with the two kept apart, and compares."
          : isAboutCorrectness(answer.reason)
            ? "The rule keeps results right. It holds for a forced pair too, so expect the same refusal."
            : "Explores again with the two fused, if that is legal, and compares."}
      </span>
    </p>
  );
}

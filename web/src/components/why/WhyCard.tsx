/**
 * Why two nodes are, or are not, in one kernel: beside the pair on the map, and never over it. It asks the service, so
 * any two nodes have an answer. It stays while a change is tried, and then tells what the change did.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer } from "../../api";
import type { Graph, Report } from "../../report";
import { type Pair, pair, reasons, reasonShown } from "../../state";
import { KernelTag } from "../KernelTag";
import { Name } from "../Name";
import { Worded } from "../Worded";
import { decisionOf, historyOf, metAs } from "./answers";
import { Numbers } from "./Numbers";
import { ReasonName, ReasonPage } from "./ReasonPage";
import { Sides } from "./Sides";
import { Try } from "./Try";
import { useAnswers } from "./useAnswers";
import { useFocus, usePlace } from "./useCard";

const VERDICTS: Record<Answer["verdict"], string> = { fused: "Fused", refused: "Not fused", "never considered": "Not considered" };

const ENDS = /[.!?]$/;

function Verdict({ answer, seen }: { answer: Answer; seen: Set<string> }) {
  return (
    <p class="why-verdict" data-verdict={answer.verdict} data-testid="why-verdict">
      <b>{`${VERDICTS[answer.verdict]}: `}</b>
      <Worded text={ENDS.test(answer.message) ? answer.message : `${answer.message}.`} seen={seen} />
    </p>
  );
}

function Rule({ answer, graph }: { answer: Answer; graph: Graph | null }) {
  const family = reasons.value.get(answer.reason)?.family ?? answer.reason.split(".")[0];
  const places = (graph?.kernels ?? []).flatMap((kernel, place) => ([answer.a, answer.b].some((node) => kernel.nodes.includes(node)) ? [place] : []));
  return (
    <p class="why-rule">
      <span class="quiet">rule </span>
      <ReasonName id={answer.reason} />
      <span class="quiet">{` of the family ${family}`}</span>
      {places.length > 0 && (
        <span class="push">
          {places.map((place) => (
            <KernelTag key={place} place={place} />
          ))}
        </span>
      )}
    </p>
  );
}

function Rounds({ answer, graph }: { answer: Answer; graph: Graph | null }) {
  const history = historyOf(answer, graph);
  if (history.length === 0) return null;
  return (
    <details open={history.length <= 3}>
      <summary>{history.length === 1 ? `Looked at once, in round ${history[0]?.round}` : `Asked ${history.length} times`}</summary>
      <ol class="why-rounds">
        {history.map((decision, place) => (
          <li key={place}>
            <span class="quiet">{`round ${decision.round} `}</span>
            <span class={`verdict-chip ${decision.verdict}`}>{decision.verdict}</span>{" "}
            <code>{`${decision.a} + ${decision.b}`}</code> <ReasonName id={decision.reason} />
            {history.length > 1 && (
              <span class="why-round-said">
                <Worded text={decision.message} />
              </span>
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}

function Body({ answer, report }: { answer: Answer; report: Report }) {
  const graph = report.graphs.find(({ name }) => name === answer.graph) ?? null;
  const decision = decisionOf(answer, historyOf(answer, graph));
  const met = decision && metAs(decision, answer);
  const seen = new Set<string>();
  return (
    <>
      <Verdict answer={answer} seen={seen} />
      {met && (
        <p class="quiet" data-testid="met-as">
          <Worded text={met} seen={seen} />
        </p>
      )}
      <Rule answer={answer} graph={graph} />
      {decision && graph && <Sides decision={decision} graph={graph} />}
      {graph && <Numbers answer={answer} decision={decision} graph={graph} report={report} />}
      {answer.would_fuse_if && (
        <p class="why-would" data-testid="would-fuse-if">
          <b>Would fuse if </b>
          <Worded text={`${answer.would_fuse_if.replace(/\.$/, "")}.`} seen={seen} />
        </p>
      )}
      <Try answer={answer} graph={graph} />
      <Rounds answer={answer} graph={graph} />
    </>
  );
}

/** A name may stand for several loop nodes: which of the pairs is meant. */
function Choice({ answers, chosen, onChoose }: { answers: Answer[]; chosen: number; onChoose(answer: Answer): void }) {
  if (answers.length < 2) return null;
  return (
    <label class="why-choice">
      <span>{`${answers.length} pairs of loops have these names:`}</span>
      <select value={chosen} onChange={(event) => onChoose(answers[Number(event.currentTarget.value)]!)}>
        {answers.map((answer, place) => (
          <option key={place} value={place}>
            {`${answer.a} and ${answer.b}: ${VERDICTS[answer.verdict].toLowerCase()}`}
          </option>
        ))}
      </select>
    </label>
  );
}

function close(): void {
  pair.value = null;
}

function Card({ asked }: { asked: Pair }) {
  const card = useRef<HTMLElement>(null);
  const handle = useRef<HTMLDivElement>(null);
  const [wanted, choose] = useState<{ of: Pair; a: string; b: string } | null>(null);
  const { shown, answers, problem, isAsking } = useAnswers(asked);
  const found = wanted?.of === asked ? answers.findIndex(({ a, b }) => a === wanted.a && b === wanted.b) : 0;
  const answer = answers[Math.max(0, found)];
  usePlace(card, handle, asked);
  useFocus(card, true);
  // The page of a reason belongs to the card.
  useEffect(() => () => void (reasonShown.value = null), []);
  const isOld = shown?.stale || (isAsking && answers.length > 0);
  return (
    <section class="why-card" id="why-card" role="dialog" aria-labelledby="why-title" data-pane="why" data-no-pin tabIndex={-1} ref={card} data-page={reasonShown.value ?? undefined}>
      <div class="why-head" ref={handle}>
        <h2 id="why-title">
          <Name text={asked.a} /> <span class="quiet">and</span> <Name text={asked.b} />
        </h2>
        <button type="button" class="plain why-grip" aria-label="Move the card: drag it, or press the arrow keys" title="Drag, or press the arrow keys">
          ⠿
        </button>
        <button type="button" class="plain why-close" aria-label="Close" title="Close (Escape)" onClick={close}>
          ×
        </button>
      </div>
      <div class="why-columns">
        <div class="why-body" role="region" aria-label="Why" tabIndex={0} data-stale={isOld || undefined} aria-busy={isAsking}>
          {problem && <p class="bad">{problem}</p>}
          {!problem && !answer && <p class="quiet">{shown ? "Asking." : "This is known after scheduling."}</p>}
          <Choice answers={answers} chosen={Math.max(0, found)} onChoose={({ a, b }) => choose({ of: asked, a, b })} />
          {answer && shown && <Body answer={answer} report={shown.report} />}
        </div>
        {reasonShown.value !== null && <ReasonPage id={reasonShown.value} />}
      </div>
    </section>
  );
}

/** The page of a reason that is not about a pair. */
function ReasonCard({ id }: { id: string }) {
  const card = useRef<HTMLElement>(null);
  usePlace(card, card, null);
  useFocus(card, true);
  return (
    <section class="why-card why-card-page" role="dialog" aria-label={`The reason ${id}`} data-pane="why" data-no-pin tabIndex={-1} ref={card}>
      <ReasonPage id={id} />
    </section>
  );
}

export function WhyCard() {
  const asked = pair.value;
  if (asked) return <Card asked={asked} />;
  return reasonShown.value === null ? null : <ReasonCard id={reasonShown.value} />;
}

import { useMemo, useState } from "preact/hooks";
import { type Answer, getWhy } from "../api";
import type { Graph } from "../report";
import { report } from "../state";
import { WhatIfButtons } from "./WhatIfButtons";

/** A name may stand for several loops; the first answers are those that were asked about. */
const ANSWERS_SHOWN = 3;

function namesOf(graph: Graph): string[] {
  const names = [...graph.loops.map((loop) => loop.name), ...graph.aten.filter((node) => node.op !== "output").map((node) => node.name)];
  return [...new Set(names)];
}

function Said({ answer }: { answer: Answer }) {
  return (
    <li>
      <b>{`${answer.a} and ${answer.b}`}</b> <span class={`verdict-chip ${answer.verdict === "fused" ? "fused" : "refused"}`}>{answer.verdict}</span>{" "}
      <a href={`/api/v1/reasons/${encodeURIComponent(answer.reason)}`} target="_blank" rel="noreferrer">
        <code>{answer.reason}</code>
      </a>{" "}
      {answer.message}
      {answer.a !== answer.b && <WhatIfButtons pair={[answer.a, answer.b]} verdict={answer.verdict} />}
      {answer.would_fuse_if && <p>{`It would fuse if ${answer.would_fuse_if}.`}</p>}
      {answer.decisions.length > 1 && (
        <ol>
          {answer.decisions.map((decision, place) => (
            <li key={place}>{`round ${decision.round}, ${decision.a} + ${decision.b}: ${decision.verdict}, ${decision.message}`}</li>
          ))}
        </ol>
      )}
    </li>
  );
}

/** Two nodes chosen by name, and why they are, or are not, in one kernel. */
export function AskWhy({ graph }: { graph: Graph }) {
  const [a, setA] = useState("");
  const [b, setB] = useState("");
  const [answers, setAnswers] = useState<Answer[]>([]);
  const [problem, setProblem] = useState("");
  const names = useMemo(() => namesOf(graph), [graph]);
  const ask = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      setAnswers(await getWhy(report.value?.id ?? "", a.trim(), b.trim()));
      setProblem("");
    } catch (failure) {
      setAnswers([]);
      setProblem(failure instanceof Error ? failure.message : String(failure));
    }
  };
  return (
    <form class="filters ask-why" onSubmit={(event) => void ask(event)}>
      <span>why are</span>
      <input type="text" list="node-names" aria-label="First node" placeholder="a node" value={a} onInput={(event) => setA(event.currentTarget.value)} required />
      <span>and</span>
      <input type="text" list="node-names" aria-label="Second node" placeholder="another" value={b} onInput={(event) => setB(event.currentTarget.value)} required />
      <button type="submit">Ask why</button>
      <datalist id="node-names">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div class="answers" role="status">
        {problem && <span class="bad">{problem}</span>}
        {answers.length > 0 && (
          <ul>
            {answers.slice(0, ANSWERS_SHOWN).map((answer, place) => (
              <Said key={place} answer={answer} />
            ))}
          </ul>
        )}
      </div>
    </form>
  );
}

import { useEffect, useId, useRef, useState } from "preact/hooks";
import * as api from "../../api";
import { pathOf } from "../../explore";
import { shownValue } from "../../questions";
import { report, say } from "../../state";
import { viewQuery } from "../../view";
import { copyText } from "../copy";

/** Answers that are asked for most, by their words. */
const USUAL: { label: string; text: string; unit: string; answer: string }[] = [
  { label: "kernels", text: "How many kernels does the compiled program launch?", unit: "kernels", answer: "summary.kernels" },
  { label: "eager kernels", text: "How many kernels does PyTorch launch without a compiler?", unit: "kernels", answer: "summary.eager_kernels" },
  { label: "MB moved", text: "How many MB does the compiled program move?", unit: "MB", answer: "summary.bytes | in MB" },
  { label: "refused pairs", text: "How many pairs were refused?", unit: "pairs", answer: "graphs | each decisions | where verdict = refused | count" },
  { label: "graph breaks", text: "How many graph breaks are there?", unit: "breaks", answer: "breaks | count" },
];

/** Makes a link to this exploration that asks before it shows. The answer is computed from the report, never typed. */
export function AskAQuestion({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [first] = USUAL;
  const [question, setQuestion] = useState<api.Question>({ text: first?.text ?? "", kind: "number", unit: first?.unit ?? "", choices: [], answer: first?.answer ?? "" });
  const [found, setFound] = useState<api.ReportValue | string | null>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const shown = report.value?.id;
  useEffect(() => {
    if (!shown || !question.answer.trim()) return;
    let isWanted = true;
    const later = window.setTimeout(() => {
      api.getValues(shown, [question.answer]).then(
        ([value]) => isWanted && setFound(value ?? null),
        (error: Error) => isWanted && setFound(error.message),
      );
    }, 300);
    return () => {
      isWanted = false;
      window.clearTimeout(later);
    };
  }, [shown, question.answer]);
  const problem = typeof found === "string" ? found : found?.problem;
  const copy = (place: "x" | "embed") => (): void => {
    if (!shown) return;
    const query = new URLSearchParams(viewQuery());
    for (const name of ["lesson", "step"]) query.delete(name);
    query.set("ask", JSON.stringify(question));
    const path = place === "x" ? pathOf(shown) : `/embed/${encodeURIComponent(shown)}`;
    const link = new URL(`${path}?${query.toString()}`, location.href).href;
    void copyText(link).then((copied) => say(copied ? "Link copied" : link));
    onClose();
  };
  return (
    <dialog class="help ask-dialog" ref={dialog} aria-labelledby={`${id}-title`} onClose={onClose}>
      <h2 id={`${id}-title`}>Ask a question about this</h2>
      <p>The reader of the link answers first. The right answer is computed from the report.</p>
      <p class="ask-usual">
        {USUAL.map(({ label, ...usual }) => (
          <button key={label} type="button" onClick={() => setQuestion({ ...question, ...usual, kind: "number" })}>
            {label}
          </button>
        ))}
      </p>
      <label for={`${id}-text`}>Question</label>
      <input id={`${id}-text`} maxLength={400} value={question.text} onInput={(event) => setQuestion({ ...question, text: event.currentTarget.value })} />
      <label for={`${id}-kind`}>Answered by</label>
      <select id={`${id}-kind`} value={question.kind} onChange={(event) => setQuestion({ ...question, kind: event.currentTarget.value as api.QuestionKind })}>
        <option value="number">a number</option>
        <option value="line">a line of the snippet</option>
        <option value="node">a node of the map</option>
      </select>
      <label for={`${id}-path`}>Path of the answer in the report</label>
      <input id={`${id}-path`} class="mono" maxLength={300} value={question.answer} onInput={(event) => setQuestion({ ...question, answer: event.currentTarget.value })} />
      <p role="status" class={problem ? "warn" : "quiet"}>
        {problem ?? (found && typeof found === "object" ? `The answer is ${shownValue(found.value, question.unit)}.` : "…")}
      </p>
      <p class="ask-usual">
        <button type="button" class="primary" disabled={!!problem || !question.text.trim()} onClick={copy("x")}>
          Copy the link
        </button>
        <button type="button" disabled={!!problem || !question.text.trim()} onClick={copy("embed")}>
          Copy a link to embed
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </p>
    </dialog>
  );
}

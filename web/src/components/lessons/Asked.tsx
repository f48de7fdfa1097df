import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Question, ReportValue } from "../../api";
import { kindOf, nameIn } from "../../links";
import { isRight, shownValue } from "../../questions";
import { pinned } from "../../state";
import { Prose } from "./Prose";

interface Properties {
  question: Question;
  /** What the reader said; undefined until then. */
  given: string | undefined;
  /** What is right; undefined until the service has said so. */
  found: ReportValue | undefined;
  onAnswer(given: string): void;
  /** Shown with the answer. */
  children?: ComponentChildren;
}

/** What the reader has selected, where that is of the kind that the question asks for. */
function selected(kind: Question["kind"]): string {
  const item = pinned.value;
  if (!item) return "";
  if (kind === "line") return kindOf(item) === "line" ? nameIn(item) : "";
  return kind === "node" && ["aten", "fx", "loop"].includes(kindOf(item)) ? nameIn(item) : "";
}

const ASKS: Record<Question["kind"], string> = {
  number: "Your guess",
  choice: "Your guess",
  line: "Line: type its number, or click it in the snippet",
  node: "Node: type its name, or click it on the map",
};

/** A question, and what is right once an answer was given. */
export function Asked({ question, given, found, onAnswer, children }: Properties) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const told = useRef<HTMLDivElement>(null);
  const wasOpen = useRef(given === undefined);
  useEffect(() => {
    // The view that comes with the answer may have taken the room in which it stands.
    if (wasOpen.current && given !== undefined) told.current?.scrollIntoView({ block: "start" });
    wasOpen.current = given === undefined;
  }, [given]);
  const said = typed || selected(question.kind);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (said.trim()) onAnswer(said);
  };
  return (
    <div class="asked">
      <div class="asked-text">
        <Prose text={question.text} />
      </div>
      {given === undefined && (
        <form onSubmit={submit}>
          {question.kind === "choice" ? (
            <fieldset>
              <legend class="visually-hidden">{ASKS.choice}</legend>
              {question.choices.map(({ value, label }) => (
                <button key={value} type="button" onClick={() => onAnswer(value)}>
                  {label}
                </button>
              ))}
            </fieldset>
          ) : (
            <>
              <label for={id}>{ASKS[question.kind]}</label>
              <span class="asked-answer">
                <input id={id} value={said} inputMode={question.kind === "node" ? "text" : "decimal"} autocomplete="off" onInput={(event) => setTyped(event.currentTarget.value)} />
                <span>{question.unit}</span>
                <button type="submit" class="primary" disabled={!said.trim()}>
                  Answer
                </button>
              </span>
            </>
          )}
        </form>
      )}
      {given !== undefined && (
        <div class="asked-told" role="status" ref={told}>
          <Verdict question={question} given={given} found={found} />
          {children}
        </div>
      )}
    </div>
  );
}

function Verdict({ question, given, found }: Pick<Properties, "question" | "found"> & { given: string }) {
  const worded = (value: string): string => question.choices.find((choice) => choice.value === value)?.label ?? value;
  if (!found) return <p class="quiet">The answer is computed from the report, which is loading.</p>;
  if (found.problem) return <p class="warn">This report has no answer: {found.problem}</p>;
  const right = question.kind === "choice" ? worded(shownValue(found.value)) : shownValue(found.value, question.unit);
  const wasRight = isRight(given, question, found.value);
  return (
    <p class={wasRight ? "asked-right" : "asked-wrong"}>
      <strong>{wasRight ? "Right" : "Not quite"}: {right}.</strong>
      {!wasRight && ` You said ${worded(given)}.`}
    </p>
  );
}

import { useEffect, useState } from "preact/hooks";
import { getReasonPage, type ReasonPage as Page } from "../../api";
import { isEmbedded } from "../../embed";
import { explore } from "../../explore";
import { options, requestFrom } from "../../options";
import { pair, reasons, reasonShown, source } from "../../state";
import { forgetTyping } from "../../typing";
import { Prose } from "../lessons/Prose";
import { isProgram, type Part, partsOf } from "./page";

function run(example: string): void {
  forgetTyping();
  source.value = example;
  pair.value = null;
  reasonShown.value = null;
  // The inputs of the snippet before are not those of the example.
  options.value = { ...options.value, entry: "", inputs: "", sweep: "" };
  void explore(requestFrom(example));
}

function Shown({ part }: { part: Part }) {
  if (part.kind === "heading") return <h4>{part.text}</h4>;
  if (part.kind === "text") return <Prose text={part.text} />;
  return (
    <div class="reason-code">
      <pre tabIndex={0} aria-label="Example">
        <code>{part.source}</code>
      </pre>
      {isProgram(part) && !isEmbedded() && (
        <button type="button" onClick={() => run(part.source.trimEnd() + "\n")} title="Explore this example. “Earlier” returns to the present one.">
          Run this example
        </button>
      )}
    </div>
  );
}

/** What a reason means, an example that leaves it, and what to do. */
export function ReasonPage({ id }: { id: string }) {
  const [found, setFound] = useState<{ id: string; page: Page | null; problem: string }>({ id: "", page: null, problem: "" });
  useEffect(() => {
    let isWanted = true;
    getReasonPage(id).then(
      (page) => isWanted && setFound({ id, page, problem: "" }),
      (error: Error) => isWanted && setFound({ id, page: null, problem: error.message }),
    );
    return () => {
      isWanted = false;
    };
  }, [id]);
  const { page, problem } = found.id === id ? found : { page: null, problem: "" };
  return (
    <article class="reason-page" aria-label={`The reason ${id}`} role="region" tabIndex={0}>
      <h3>
        <code>{id}</code>
        <button type="button" class="plain why-close" aria-label="Close the page of the reason" onClick={() => (reasonShown.value = null)}>
          ×
        </button>
      </h3>
      {problem && <p class="bad">{problem}</p>}
      {!page && !problem && <p class="quiet">{reasons.value.get(id)?.sentence ?? "Loading."}</p>}
      {page && partsOf(page.page).map((part, place) => <Shown key={place} part={part} />)}
    </article>
  );
}

/** The reason's name: a click shows its page in the card. */
export function ReasonName({ id }: { id: string }) {
  return (
    <button
      type="button"
      class="plain reason-name"
      aria-expanded={reasonShown.value === id}
      title={reasons.value.get(id)?.sentence}
      onClick={() => (reasonShown.value = reasonShown.value === id ? null : id)}
    >
      <code>{id}</code>
    </button>
  );
}

import { effect, signal } from "@preact/signals";
import { isEmbedded } from "../embed";
import * as format from "../format";
import { askedHere, lessonName } from "../lessons";
import type { Summary } from "../report";
import { examples, isRunning, phoneTab, report, source } from "../state";
import { hasTyped } from "../typing";

const STORED = "fusionscope.welcomed";

const isNew = signal(localStorage.getItem(STORED) === null);
// Who writes has found the way, and a button that empties the editor is then in it.
effect(() => {
  if (hasTyped.value) dismiss();
});

function dismiss(): void {
  isNew.value = false;
  localStorage.setItem(STORED, "yes");
}

/** An empty editor, with the keyboard in it. */
function pasteYourOwn(): void {
  dismiss();
  phoneTab.value = "code";
  source.value = "";
  requestAnimationFrame(() => void import("../editor/view").then(({ focusEditor }) => {
    const host = document.getElementById("editor");
    if (host) focusEditor(host);
  }));
}

/** What became of the example, or of the snippet that a link leads to, in a sentence. */
function exampleText(summary: Summary | null, name: string): string {
  if (summary?.kernels == null) return isRunning.value ? `The ${name} below is being compiled now.` : "The map shows them in the colour of their kernel.";
  const before = summary.eager_kernels === null ? `The ${name}` : `The ${name}'s ${format.count(summary.eager_kernels, "eager kernel")}`;
  return `${before} became ${format.count(summary.kernels, "kernel")}.`;
}

/** On a first visit: what this is, one example done, and the way to one's own code. */
export function Welcome() {
  // A lesson explains itself.
  if (!isNew.value || isEmbedded() || lessonName.value || askedHere.value) return null;
  const name = examples.value.some((one) => one.source === report.value?.source) ? "example" : "snippet";
  return (
    <section class="welcome" aria-label="What this is">
      <p>
        <strong>Fusionscope shows which operations of your PyTorch code share a kernel, and why.</strong>
      </p>
      <p>{exampleText(report.value?.summary ?? null, name)} Click an operation for its kernel, a red dashed line for the reason against fusing.</p>
      <p class="welcome-ways">
        <button type="button" class="primary" onClick={pasteYourOwn}>
          Paste your own code
        </button>
        <button type="button" onClick={dismiss}>
          {`Keep the ${name}`}
        </button>
      </p>
    </section>
  );
}

import { isEmbedded } from "../embed";
import { isFailed, isEdited, isRunning, report } from "../state";
import { exploresWhileTyping, toggleExploring } from "../typing";
import { Editor } from "./Editor";
import { OptionsRow } from "./OptionsRow";
import { exploreOrStop } from "./run";
import { Worded } from "./Worded";

/** What the message under its line does not tell: what can be done, the rest of a long message, or one without a line. */
function ErrorCard() {
  const shown = report.value;
  // What the reader stopped needs no explanation.
  const error = shown && isFailed(shown) && shown.status !== "cancelled" ? shown.error : null;
  if (!error || (error.line !== null && !error.hint && !error.message.includes("\n"))) return null;
  return (
    <div class="error-card" role="alert">
      <strong>{error.type}</strong>
      {error.line !== null && ` at line ${error.line}`}: <span class="error-text">{error.message}</span>
      {error.hint && (
        <p class="hint">
          <Worded text={error.hint} />
        </p>
      )}
    </div>
  );
}

/** What explores, at once or after a pause. */
function Ways() {
  return (
    <>
      <label class="check push" title="Explore 0.7 s after the last change. Turn it off to explore with the button only.">
        <input type="checkbox" checked={exploresWhileTyping.value} onChange={toggleExploring} />
        while typing
      </label>
      <button type="button" class={isRunning.value ? "stop" : "primary"} onClick={exploreOrStop} data-action="explore">
        {isRunning.value ? "Stop" : "Explore"}
        <kbd>{isRunning.value ? "" : /Mac/.test(navigator.platform) ? "⌘↵" : "Ctrl ↵"}</kbd>
      </button>
    </>
  );
}

export function EditorPane() {
  return (
    <section class="pane" id="pane-editor" data-pane="editor" aria-label="Snippet" tabIndex={-1}>
      <div class="pane-bar">
        <h2>Snippet</h2>
        {isEdited.value && (
          <span class="quiet edited" title="The map shows the snippet as it was explored">
            edited
          </span>
        )}
        {!isEmbedded() && <Ways />}
      </div>
      <Editor />
      <ErrorCard />
      {!isEmbedded() && <OptionsRow />}
    </section>
  );
}

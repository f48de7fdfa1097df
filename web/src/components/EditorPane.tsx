import { isEdited, isRunning, report } from "../state";
import { Editor } from "./Editor";
import { OptionsRow } from "./OptionsRow";
import { exploreOrStop } from "./run";

export function EditorPane() {
  const error = report.value?.error ?? null;
  return (
    <section class="pane" id="pane-editor" data-pane="editor" aria-label="Snippet" tabIndex={-1}>
      <div class="pane-bar">
        <h2>Snippet</h2>
        {isEdited.value && <span class="quiet">edited since it was explored</span>}
        <button type="button" class={isRunning.value ? "stop" : "primary"} onClick={exploreOrStop} data-action="explore">
          {isRunning.value ? "Stop" : "Explore"}
          <kbd>{isRunning.value ? "" : /Mac/.test(navigator.platform) ? "⌘↵" : "Ctrl ↵"}</kbd>
        </button>
      </div>
      <Editor />
      {error && (
        <div class="error-card" role="alert">
          <strong>{error.type}</strong>
          {error.line !== null && ` at line ${error.line}`}
          {error.stage && ` in ${error.stage}`}: <span class="error-text">{error.message}</span>
          {error.hint && <p class="hint">{error.hint}</p>}
        </div>
      )}
      <OptionsRow />
    </section>
  );
}

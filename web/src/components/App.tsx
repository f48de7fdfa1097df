import { useEffect } from "preact/hooks";
import { announcement, helpIsOpen } from "../state";
import { AnswerBar } from "./AnswerBar";
import { Bottom } from "./Bottom";
import { Centre } from "./Centre";
import { EditorPane } from "./EditorPane";
import { Header } from "./Header";
import { Help } from "./Help";
import { KernelsPane } from "./KernelsPane";
import { exploreNow } from "./run";
import { useSplits } from "./useSplits";

function isTyping(event: KeyboardEvent): boolean {
  // The editor lives in a shadow root: the path names the element that really has the focus.
  const [target] = event.composedPath();
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusNextPane(step: 1 | -1): void {
  const panes = [...document.querySelectorAll<HTMLElement>("[data-pane]")];
  const now = panes.findIndex((pane) => pane.contains(document.activeElement));
  panes[(now + step + panes.length) % panes.length]?.focus();
}

export function App() {
  useSplits();
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        exploreNow();
      } else if (event.key === "F6") {
        event.preventDefault();
        focusNextPane(event.shiftKey ? -1 : 1);
      } else if (event.key === "?" && !isTyping(event)) {
        helpIsOpen.value = !helpIsOpen.value;
      }
    };
    document.addEventListener("keydown", onKey, true);
    return () => document.removeEventListener("keydown", onKey, true);
  }, []);
  return (
    <div class="page">
      <Header />
      <AnswerBar />
      <main class="rows" id="rows">
        <div class="columns" id="top-row">
          <EditorPane />
          <Centre />
          <KernelsPane />
        </div>
        <Bottom />
      </main>
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
      <Help />
    </div>
  );
}

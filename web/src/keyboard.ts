/** Keys that hold on the whole page, wherever the focus is. */
import { drawer, helpIsOpen, kernelPicked, pair, pinned, reasonShown, release } from "./state";

/** One step back: first the card, then the selection, then the drawer. False where there was nothing to close. */
export function stepBack(): boolean {
  if (pair.value !== null) pair.value = null;
  else if (reasonShown.value !== null) reasonShown.value = null;
  else if (pinned.value !== null || kernelPicked.value !== null) release();
  else if (drawer.value !== null) drawer.value = null;
  else return false;
  return true;
}

function isTyping(event: KeyboardEvent): boolean {
  // The editor lives in a shadow root: the path names the element that really has the focus.
  const [target] = event.composedPath();
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function isInEditor(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  return target instanceof HTMLElement && target.isContentEditable;
}

function focusNextPane(step: 1 | -1): void {
  const panes = [...document.querySelectorAll<HTMLElement>("[data-pane]")].filter((pane) => pane.offsetParent !== null);
  // A pane may lie in another one.
  const now = panes.findLastIndex((pane) => pane.contains(document.activeElement));
  const next = panes[(now + step + panes.length) % panes.length];
  // One that takes no focus has something that does.
  (next?.matches("[tabindex]") ? next : next?.querySelector<HTMLElement>('[tabindex="0"]'))?.focus();
}

/** Listens until the answer is called. */
export function installKeys(exploreNow: () => void): () => void {
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
  // After whoever has the focus: what closes something of its own with Escape prevents the default.
  const onEscape = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || event.defaultPrevented || helpIsOpen.value) return;
    // In the editor it is the way out, which closes nothing elsewhere; a line that a click pinned is released.
    if (isInEditor(event)) pinned.value = null;
    else stepBack();
  };
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("keydown", onEscape);
  return () => {
    document.removeEventListener("keydown", onKey, true);
    document.removeEventListener("keydown", onEscape);
  };
}

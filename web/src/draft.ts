/**
 * What is written and not explored yet stays with its entry of the browser's history, so that a reload, and a way back
 * and forward, lose nothing of it. No other tab and no server gets it.
 */
import { source } from "./state";

/** Browsers allow only some changes of an entry a second. */
const PAUSE_MS = 300;
/** Characters: no service takes as many, and browsers keep no more than some megabytes for an entry. */
const MOST = 1_000_000;

let timer = 0;

function kept(): string | null {
  const found = (history.state as { draft?: unknown } | null)?.draft;
  return typeof found === "string" ? found : null;
}

function put(text: string | null): void {
  window.clearTimeout(timer);
  timer = 0;
  // An empty editor is nothing to come back to.
  const draft = text && text.length <= MOST ? text : null;
  if (draft !== kept()) history.replaceState(draft === null ? null : { draft }, "", location.href);
}

/** What the reader wrote at this entry of the history; null where nothing of it is left to explore. */
export function draftHere(): string | null {
  // What waits to be kept was written at the entry before.
  window.clearTimeout(timer);
  timer = 0;
  return kept();
}

/** The reader has changed the snippet. */
export function keepDraft(): void {
  timer ||= window.setTimeout(() => put(source.value), PAUSE_MS);
}

/** This is explored now: what differs from it was written in the meantime. */
export function settleDraft(explored: string): void {
  put(source.value === explored ? null : source.value);
}

/** This gets an entry of its own. Where it is what was written here, nothing is left of that; an example that took its
 * place leaves it to come back to. */
export function dropDraft(explored: string): void {
  if (timer !== 0 || kept() === explored) put(null);
}

// Not `pagehide`: what is put there is gone after a reload.
if (typeof window !== "undefined") {
  window.addEventListener("beforeunload", () => {
    if (timer !== 0) put(source.value);
  });
}

/**
 * What is written and not explored yet stays with its entry of the browser's history, so that a reload, and a way back
 * and forward, lose nothing of it. No other tab and no server gets it.
 */
import { source } from "./state";

interface Kept {
  draft: string;
  /** What tells this entry from all others. */
  entry: number;
}

/** Browsers allow only some changes of an entry a second. */
const PAUSE_MS = 300;
/** Characters: no service takes as many, and browsers keep no more than some megabytes for an entry. */
const MOST = 1_000_000;

let timer = 0;
/** The entry whose text waits. */
let waiting = 0;
let lastPut = 0;
/** What waited to be kept when its entry was left, which can no longer be changed then. */
const left = new Map<number, string>();

function kept(): Kept | null {
  const found = history.state as Partial<Kept> | null;
  return typeof found?.draft === "string" && typeof found.entry === "number" ? { draft: found.draft, entry: found.entry } : null;
}

function forgetTimer(): void {
  window.clearTimeout(timer);
  timer = 0;
}

function put(text: string | null): void {
  forgetTimer();
  const before = kept();
  // An empty editor is nothing to come back to.
  const draft = text && text.length <= MOST ? text : null;
  if (draft === (before?.draft ?? null)) return;
  lastPut = performance.now();
  const now: Kept | null = draft === null ? null : { draft, entry: before?.entry ?? Math.random() };
  history.replaceState(now, "", location.href);
}

/** What the reader wrote at this entry of the history; null where nothing of it is left to explore. */
export function draftHere(): string | null {
  // What waits to be kept was written at the entry before.
  if (timer !== 0) left.set(waiting, source.value);
  forgetTimer();
  const entry = kept()?.entry;
  if (entry !== undefined && left.has(entry)) put(left.get(entry) ?? null);
  if (entry !== undefined) left.delete(entry);
  return kept()?.draft ?? null;
}

/** The reader has changed the snippet. */
export function keepDraft(): void {
  const here = kept();
  // The first change names the entry, and so it never waits.
  if (here === null) return put(source.value);
  waiting = here.entry;
  timer ||= window.setTimeout(() => put(source.value), lastPut + PAUSE_MS - performance.now());
}

/** This is explored now: what differs from it was written in the meantime. */
export function settleDraft(explored: string): void {
  put(source.value === explored ? null : source.value);
}

/** This gets an entry of its own. Where it is what was written here, nothing is left of that; an example that took its
 * place leaves it to come back to. */
export function dropDraft(explored: string): void {
  if (timer !== 0 || kept()?.draft === explored) put(null);
}

// Not `pagehide`: what is put there is gone after a reload.
if (typeof window !== "undefined") {
  window.addEventListener("beforeunload", () => {
    if (timer !== 0) put(source.value);
  });
}

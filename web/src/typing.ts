/** Exploring while one types: after a pause, where the reader wants it. */
import { signal } from "@preact/signals";
import type { ExplorationRequest } from "./api";
import { keepDraft } from "./draft";
import { isEmbedded } from "./embed";
import { explore, isAsked } from "./explore";
import { requestFrom } from "./options";
import { problem, source } from "./state";

const STORED = "fusionscope.explore-while-typing";
const PAUSE_MS = 700;

export const exploresWhileTyping = signal(localStorage.getItem(STORED) !== "no");

let timer = 0;

/** The reader has written something of their own. */
export const hasTyped = signal(false);

export function toggleExploring(): void {
  exploresWhileTyping.value = !exploresWhileTyping.value;
  localStorage.setItem(STORED, exploresWhileTyping.value ? "yes" : "no");
  if (exploresWhileTyping.value) typed();
  else forgetTyping();
}

/** What was typed is explored already, or not wanted any more. */
export function forgetTyping(): void {
  window.clearTimeout(timer);
}

/** The reader has changed the snippet or an option. */
export function typed(): void {
  forgetTyping();
  hasTyped.value = true;
  keepDraft();
  if (!exploresWhileTyping.value || isEmbedded()) return;
  timer = window.setTimeout(() => void exploreTyped(), PAUSE_MS);
}

async function exploreTyped(): Promise<void> {
  const request = requestTyped();
  if (request === null || isAsked(request) || (await explore(request)) === "asked") return;
  exploresWhileTyping.value = false;
  problem.value = `${problem.value ?? ""} Exploring while typing is off for now: press Explore when you want a result.`;
}

/** Null while an option is half written: its own field says what it lacks. */
function requestTyped(): ExplorationRequest | null {
  try {
    return source.value.trim() === "" ? null : requestFrom(source.value);
  } catch {
    return null;
  }
}

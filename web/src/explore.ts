/** Running an exploration: post it, follow its events, put what arrives into the state. */
import { batch } from "@preact/signals";
import * as api from "./api";
import { draftHere, dropDraft, settleDraft } from "./draft";
import { isEmbedded, ONLY_TO_READ } from "./embed";
import { changedSince, fieldsFrom, options } from "./options";
import { begunAgain, withParts } from "./parts";
import { type Report, REPORT_VERSION } from "./report";
import { breathe } from "./slices";
import * as state from "./state";
import { announcementOf } from "./verdict";
import { lookAt, viewQuery } from "./view";
import { remember } from "./visits";

const EMPTY = "The snippet is empty. Paste PyTorch code, or choose an example.";
const NOT_THERE = "There is no exploration at this link. The link may be incomplete, or the exploration was removed. Paste its code to explore it again.";
const OTHER_VERSION = "This exploration was stored by another version of Fusionscope, which this page cannot show. Its code is here: press Explore to run it again.";
const LONGEST_WAIT_SECONDS = 16;

let stopFollowing: (() => void) | null = null;
/** Each exploration gets a turn; an answer that comes after the next one started is dropped. */
let turn = 0;
/** What was asked for last, as text: the same question is not asked twice. */
let asked = "";
/** The exploration that this page asked for and that has not ended. */
let own: string | null = null;
let posting: AbortController | null = null;
let endPause: (() => void) | null = null;
/** The one before is a version of the same work, and not just what was on screen when a link was followed. */
let isNextVersion = false;

export function pathOf(id: string): string {
  return `/x/${encodeURIComponent(id)}`;
}

export function idInPath(path: string): string | null {
  const match = /^\/(?:x|embed)\/([^/]+)\/?$/.exec(path);
  return match?.[1] ? decodeURIComponent(match[1]) : null;
}

/** Whether this very question is the one on screen, answered or under way. */
export function isAsked(request: api.ExplorationRequest): boolean {
  return asked === JSON.stringify(request);
}

/** What goes wrong with the request is told in the state; the answer says whether it was one too many. */
export async function explore(request: api.ExplorationRequest, address: "push" | "keep" = "push"): Promise<"asked" | "one too many"> {
  if (isEmbedded() || request.source.trim() === "") {
    state.problem.value = isEmbedded() ? ONLY_TO_READ : EMPTY;
    return "asked";
  }
  if (state.isRunning.value && isAsked(request)) return "asked";
  stopOwn();
  const mine = begin();
  isNextVersion = true;
  asked = JSON.stringify(request);
  const { signal } = (posting = new AbortController());
  try {
    const first = await persistently(() => api.startExploration(request, signal), mine);
    if (mine !== turn) return "asked";
    own = first.id;
    if (address === "push" && first.id && pathOf(first.id) !== location.pathname) {
      dropDraft(request.source);
      history.pushState(null, "", pathOf(first.id) + viewQuery());
    }
    settleDraft(request.source);
    follow(first, mine, "from the start");
  } catch (error) {
    if (mine === turn) fail(error);
    if (error instanceof api.ServiceError && error.status === api.TOO_MANY) return "one too many";
  }
  return "asked";
}

/** Show a stored exploration, and go on following it if it still runs: as `query` looks at it, or, without one, as the
 * one before was looked at. */
export async function open(id: string, query: string | null = null): Promise<void> {
  if (query !== null) lookAt(query);
  if (state.report.value?.id === id && !state.isRunning.value) return;
  const mine = begin();
  const draft = draftHere();
  const before = { source: state.source.value, options: options.value };
  if (query !== null) lookAt(query);
  try {
    const stored = await persistently(() => api.getExploration(id), mine);
    if (mine !== turn) return;
    // What was written and chosen while it loaded, or before a reload, is the reader's: it stays, as an edit of what arrives.
    if (state.source.value === before.source) state.source.value = draft ?? stored.source;
    options.value = { ...fieldsFrom(stored.options), ...changedSince(before.options) };
    // The editor takes in a long snippet, then the panes take in the report.
    await breathe();
    if (mine !== turn) return;
    if (stored.version !== REPORT_VERSION) fail(new Error(OTHER_VERSION));
    else follow(stored, mine, "from now on");
  } catch (error) {
    const isMissing = error instanceof api.ServiceError && error.status === 404;
    if (mine === turn) fail(isMissing ? new Error(NOT_THERE) : error);
  }
}

export async function stop(): Promise<void> {
  const id = state.report.value?.id;
  if (!id || state.offline.value !== null) {
    turn += 1;
    end();
    return;
  }
  try {
    await api.cancelExploration(id);
  } catch (error) {
    fail(error);
  }
}

/** Where the server does not answer: ask at once, without waiting any longer. */
export function tryNow(): void {
  endPause?.();
}

/** What was asked before is of no use to this reader once something else is asked. */
function stopOwn(): void {
  posting?.abort();
  if (own !== null && state.isRunning.value) api.leaveExploration(own).catch(() => undefined);
  own = null;
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, seconds * 1000);
    endPause = () => {
      window.clearTimeout(timer);
      resolve();
    };
  });
}

/** Asks until the server answers, later each time; meanwhile the state says that it does not. */
async function persistently<Answer>(ask: () => Promise<Answer>, mine: number): Promise<Answer> {
  for (let wait = 1; ; wait = Math.min(2 * wait, LONGEST_WAIT_SECONDS)) {
    try {
      const answer = await ask();
      if (mine === turn) state.offline.value = null;
      return answer;
    } catch (error) {
      const isGone = error instanceof api.ServiceError && error.isGone;
      if (!isGone || mine !== turn) throw error;
      state.offline.value = { retryAt: performance.now() + wait * 1000 };
      await pause(wait);
      if (mine !== turn) throw error;
    }
  }
}

function begin(): number {
  stopFollowing?.();
  stopFollowing = null;
  turn += 1;
  endPause?.();
  batch(() => {
    if (state.report.value && state.report.value.graphs.length > 0) state.previous.value = state.report.value;
    state.report.value = null;
    state.runningSince.value = performance.now();
    state.queuePosition.value = null;
    state.time.value = null;
    state.problem.value = null;
    state.offline.value = null;
    // The same words again would not be said again.
    state.announcement.value = "";
    state.hovered.value = null;
    state.pinned.value = null;
  });
  asked = "";
  isNextVersion = false;
  return turn;
}

function follow(first: Report, mine: number, from: "from the start" | "from now on"): void {
  show(first);
  if (first.status !== "running") {
    end();
    return;
  }
  const finish = (): void => void fetchUntilDone(first.id, mine);
  stopFollowing = api.followEvents(first.id, {
    reached: (isReached) => (state.offline.value = isReached ? null : { retryAt: null }),
    queued: (position) => (state.queuePosition.value = position),
    started: (limit) =>
      batch(() => {
        state.queuePosition.value = null;
        state.stageSince.value = performance.now();
        // Whoever comes while it runs does not know when it began.
        state.time.value = { since: from === "from the start" ? performance.now() : null, limit };
      }),
    stage: (changed) => {
      if (mine === turn && state.report.value) show({ ...withParts(state.report.value, changed), status: "running" });
    },
    again: () => {
      state.time.value = null;
      if (mine === turn && state.report.value) show(begunAgain(state.report.value));
    },
    done: finish,
    lost: finish,
  });
}

async function fetchUntilDone(id: string, mine: number): Promise<void> {
  try {
    while (mine === turn) {
      const latest = await persistently(() => api.getExploration(id), mine);
      if (mine !== turn) return;
      show(latest);
      if (latest.status !== "running") {
        end();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  } catch (error) {
    if (mine === turn) fail(error);
  }
}

function show(latest: Report): void {
  batch(() => {
    state.report.value = latest;
    state.stageSince.value = performance.now();
    if (state.graphIndex.value >= Math.max(1, latest.graphs.length)) state.graphIndex.value = 0;
  });
}

/** What a failure did not find out is still shown of the version before. */
function end(): void {
  stopFollowing?.();
  stopFollowing = null;
  own = null;
  const ended = state.report.value;
  batch(() => {
    state.runningSince.value = null;
    state.queuePosition.value = null;
    state.time.value = null;
    state.offline.value = null;
    if (ended === null) state.report.value = state.previous.value;
    if (ended === null || !isNextVersion || !state.isFailed(ended)) state.previous.value = null;
  });
  // Without one, what is on screen is the one before, of which all is said.
  if (ended === null) return;
  state.announcement.value = announcementOf(ended);
  remember(ended);
}

function fail(error: unknown): void {
  state.problem.value = error instanceof Error ? error.message : String(error);
  end();
}

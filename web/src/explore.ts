/** Running an exploration: post it, follow its events, put what arrives into the state. */
import { batch } from "@preact/signals";
import * as api from "./api";
import { isEmbedded, ONLY_TO_READ } from "./embed";
import { fieldsFrom, options } from "./options";
import { begunAgain, withParts } from "./parts";
import type { Report } from "./report";
import * as state from "./state";
import { lookAt, viewQuery } from "./view";

let stopFollowing: (() => void) | null = null;
/** Each exploration gets a turn; an answer that comes after the next one started is dropped. */
let turn = 0;

export function pathOf(id: string): string {
  return `/x/${encodeURIComponent(id)}`;
}

export function idInPath(path: string): string | null {
  const match = /^\/(?:x|embed)\/([^/]+)\/?$/.exec(path);
  return match?.[1] ? decodeURIComponent(match[1]) : null;
}

export async function explore(request: api.ExplorationRequest, address: "push" | "keep" = "push"): Promise<void> {
  if (isEmbedded()) {
    state.problem.value = ONLY_TO_READ;
    return;
  }
  const mine = begin();
  try {
    const first = await api.startExploration(request);
    if (mine !== turn) return;
    if (address === "push" && first.id) history.pushState(null, "", pathOf(first.id) + viewQuery());
    follow(first, mine, "from the start");
  } catch (error) {
    if (mine === turn) fail(error);
  }
}

/** Show a stored exploration, and go on following it if it still runs: as `query` looks at it, or, without one, as the
 * one before was looked at. */
export async function open(id: string, query: string | null = null): Promise<void> {
  const mine = begin();
  if (query !== null) lookAt(query);
  try {
    const stored = await api.getExploration(id);
    if (mine !== turn) return;
    state.source.value = stored.source;
    options.value = fieldsFrom(stored.options);
    follow(stored, mine, "from now on");
  } catch (error) {
    if (mine === turn) fail(error);
  }
}

export async function stop(): Promise<void> {
  const id = state.report.value?.id;
  if (!id) {
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

function begin(): number {
  stopFollowing?.();
  batch(() => {
    if (state.report.value && state.report.value.graphs.length > 0) state.previous.value = state.report.value;
    state.report.value = null;
    state.runningSince.value = performance.now();
    state.queuePosition.value = null;
    state.time.value = null;
    state.problem.value = null;
    state.hovered.value = null;
    state.pinned.value = null;
  });
  turn += 1;
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
    queued: (position) => (state.queuePosition.value = position),
    started: (limit) =>
      batch(() => {
        state.queuePosition.value = null;
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
      const latest = await api.getExploration(id);
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
    if (state.graphIndex.value >= Math.max(1, latest.graphs.length)) state.graphIndex.value = 0;
  });
}

function end(): void {
  stopFollowing?.();
  stopFollowing = null;
  batch(() => {
    state.runningSince.value = null;
    state.queuePosition.value = null;
    state.time.value = null;
    if (state.report.value === null) state.report.value = state.previous.value;
    state.previous.value = null;
  });
  const status = state.report.value?.status;
  if (status) state.announcement.value = `Exploration ended: ${status.replaceAll("_", " ")}`;
}

function fail(error: unknown): void {
  state.problem.value = error instanceof Error ? error.message : String(error);
  end();
}

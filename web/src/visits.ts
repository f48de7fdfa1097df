/**
 * The explorations of this browser, the newest first: what one goes back to, also days later, and what one compares
 * with. They stay in the browser, and all of its tabs have them.
 */
import { signal } from "@preact/signals";
import type { Report } from "./report";

export interface Visit {
  id: string;
  /** What tells it apart: the function or class that it explores. */
  title: string;
  verdict: string;
  /** Milliseconds of Unix time. */
  at: number;
}

const STORED = "fusionscope.visits";
const KEPT = 30;

function stored(): Visit[] {
  try {
    const found = JSON.parse(localStorage.getItem(STORED) ?? "[]") as unknown;
    return Array.isArray(found) ? (found as Visit[]).filter((one) => typeof one.id === "string" && typeof one.title === "string") : [];
  } catch {
    // Someone else's value: start afresh.
    return [];
  }
}

export const visits = signal<Visit[]>(typeof localStorage === "undefined" ? [] : stored());

// What another tab explores or forgets.
if (typeof window !== "undefined") {
  window.addEventListener("storage", ({ key }) => {
    if (key === STORED) visits.value = stored();
  });
}

/** The name of what a snippet defines last, or its first words. */
export function titleOf(source: string): string {
  const names = [...source.matchAll(/^\s*(?:async\s+)?(?:def|class)\s+(\w+)/gm)].map(([, name]) => name ?? "");
  const own = names.filter((name) => !name.startsWith("__") && name !== "forward");
  const words = source.split("\n").find((line) => line.trim() !== "" && !/^\s*(#|import|from)\b/.test(line));
  return own.at(-1) ?? words?.trim().slice(0, 40) ?? "empty";
}

/** One that is there already comes to the front. */
export function withVisit(known: readonly Visit[], visit: Visit): Visit[] {
  return [visit, ...known.filter((one) => one.id !== visit.id)].slice(0, KEPT);
}

export function remember({ id, source, status, summary }: Report): void {
  if (!id || status === "cancelled" || status === "dropped") return;
  // Another tab may have written since.
  keep(withVisit(stored(), { id, title: titleOf(source), verdict: summary.verdict, at: Date.now() }));
}

export function forgetVisits(): void {
  keep([]);
}

function keep(all: Visit[]): void {
  visits.value = all;
  localStorage.setItem(STORED, JSON.stringify(all));
}

/** `14:05` of today, `Nov 24, 14:05` of another day, as the reader's language has it. */
export function timeOf({ at }: Visit, now = Date.now()): string {
  const [then, today] = [new Date(at), new Date(now)];
  const clock = { hour: "2-digit", minute: "2-digit" } as const;
  if (then.toDateString() === today.toDateString()) return then.toLocaleTimeString([], clock);
  return then.toLocaleString([], { month: "short", day: "numeric", ...clock });
}

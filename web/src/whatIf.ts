/** "What if": the exploration on screen once more, with options that ask for other decisions. */
import { effect } from "@preact/signals";
import { type ExplorationRequest, getComparison } from "./api";
import { explore } from "./explore";
import type { Report } from "./report";
import { beside, drawer, problem, report } from "./state";

export type Pair = [string, string];

/** Null means: as the scheduler has it. */
export interface Wishes {
  force: Pair[];
  forbid: Pair[];
  rules_off: string[];
  largest_group: number | null;
  device_model: string | null;
}

export function wishesOf({ options }: Report): Wishes {
  return {
    force: (options.force ?? []) as Pair[],
    forbid: (options.forbid ?? []) as Pair[],
    rules_off: (options.rules_off ?? []) as string[],
    largest_group: (options.largest_group ?? null) as number | null,
    device_model: (options.device_model ?? null) as string | null,
  };
}

const isSame = (one: Pair, other: Pair): boolean => [...one].sort().join() === [...other].sort().join();

export function withoutPair(wishes: Wishes, pair: Pair): Wishes {
  const others = (pairs: Pair[]): Pair[] => pairs.filter((known) => !isSame(known, pair));
  return { ...wishes, force: others(wishes.force), forbid: others(wishes.forbid) };
}

/** What was wished of the same two nodes before is forgotten: a pair cannot be both. */
export function withPair(wishes: Wishes, option: "force" | "forbid", pair: Pair): Wishes {
  const others = withoutPair(wishes, pair);
  return { ...others, [option]: [...others[option], pair] };
}

/** All that the stored report was asked for, but for the wishes. */
export function requestWith(shown: Report, wishes: Wishes): ExplorationRequest {
  const known = Object.entries(shown.options).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(known), ...wishes, source: shown.source, based_on: shown.id };
}

export async function ask(wishes: Wishes): Promise<void> {
  const shown = report.value;
  if (!shown?.id) return;
  drawer.value = "what-if";
  await explore(requestWith(shown, wishes));
}

/** Keeps `beside` what belongs to the report on screen. */
export function installComparison(): void {
  effect(() => {
    const shown = report.value;
    if (shown === null || shown.status === "running" || shown.based_on === null) {
      beside.value = null;
      return;
    }
    if (beside.peek()?.after === shown.id) return;
    beside.value = null;
    getComparison(shown.id).then(
      (found) => {
        if (report.peek()?.id === found.after) beside.value = found;
      },
      (error: Error) => (problem.value = error.message),
    );
  });
}

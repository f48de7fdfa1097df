/** "What if": the exploration on screen once more, with options that ask for other decisions. */
import { effect } from "@preact/signals";
import { type ExplorationRequest, getComparison, whyNothingBeside } from "./api";
import { explore } from "./explore";
import type { Report, WhatIf } from "./report";
import { beside, comparedWith, problem, report } from "./state";

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
  if (shown?.id) await explore(requestWith(shown, wishes));
}

/** What came of a wish about these two nodes; null where the report was not asked for one. */
export function outcomeOf(shown: Report, pair: Pair): WhatIf | null {
  const isWish = (told: WhatIf): told is WhatIf => told.option === "force" || told.option === "forbid";
  return shown.what_if.filter(isWish).find((told) => told.asked.length === 2 && isSame(told.asked as Pair, pair)) ?? null;
}

/** Keeps `beside` what belongs to the report on screen and to what it is compared with. */
export function installComparison(): void {
  effect(() => {
    const shown = report.value;
    const other = comparedWith.value ?? shown?.based_on ?? null;
    if (shown === null || shown.status === "running" || other === null || other === shown.id) {
      beside.value = null;
      return;
    }
    const known = beside.peek();
    if (known?.after === shown.id && known.before === other) return;
    beside.value = null;
    getComparison(shown.id, other).then(
      (found) => {
        if (report.peek()?.id === found.after && (comparedWith.peek() ?? shown.based_on) === found.before) beside.value = found;
      },
      (error: unknown) => (problem.value = whyNothingBeside(error)),
    );
  });
}

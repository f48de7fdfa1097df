/** "What if": the exploration on screen once more, with options that ask for other decisions. */
import { effect } from "@preact/signals";
import { type ExplorationRequest, getComparison, whyNothingBeside } from "./api";
import { explore } from "./explore";
import type { Report, WhatIf } from "./report";
import { beside, comparedWith, notBeside, problem, report } from "./state";

export type Pair = [string, string];

/** Null means: as the scheduler has it. */
export interface Directives {
  force: Pair[];
  forbid: Pair[];
  rules_off: string[];
  largest_group: number | null;
  device_model: string | null;
}

export function directivesOf({ options }: Report): Directives {
  return {
    force: (options.force ?? []) as Pair[],
    forbid: (options.forbid ?? []) as Pair[],
    rules_off: (options.rules_off ?? []) as string[],
    largest_group: (options.largest_group ?? null) as number | null,
    device_model: (options.device_model ?? null) as string | null,
  };
}

const isSame = (one: Pair, other: Pair): boolean => [...one].sort().join() === [...other].sort().join();

export function withoutPair(directives: Directives, pair: Pair): Directives {
  const others = (pairs: Pair[]): Pair[] => pairs.filter((known) => !isSame(known, pair));
  return { ...directives, force: others(directives.force), forbid: others(directives.forbid) };
}

/** What was wished of the same two nodes before is forgotten: a pair cannot be both. */
export function withPair(directives: Directives, option: "force" | "forbid", pair: Pair): Directives {
  const others = withoutPair(directives, pair);
  return { ...others, [option]: [...others[option], pair] };
}

/** All that the stored report was asked for, but for the directives. */
export function requestWith(shown: Report, directives: Directives): ExplorationRequest {
  const known = Object.entries(shown.options).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(known), ...directives, source: shown.source, based_on: shown.id };
}

export async function ask(directives: Directives): Promise<void> {
  const shown = report.value;
  if (shown?.id) await explore(requestWith(shown, directives));
}

/** What came of a directive about these two nodes; null where the report was not asked for one. */
export function outcomeOf(shown: Report, pair: Pair): WhatIf | null {
  const isWish = (told: WhatIf): told is WhatIf => told.option === "force" || told.option === "forbid";
  return shown.what_if.filter(isWish).find((told) => told.asked.length === 2 && isSame(told.asked as Pair, pair)) ?? null;
}

/** Keeps `beside` what belongs to the report on screen and to what it is compared with. */
export function installComparison(): void {
  effect(() => {
    const shown = report.value;
    const other = comparedWith.value ?? shown?.based_on ?? null;
    notBeside.value = null;
    if (shown === null || shown.status === "running" || other === null || other === shown.id) {
      beside.value = null;
      if (shown !== null && other === shown.id) notBeside.value = "That is the exploration on screen. Choose another one.";
      return;
    }
    const known = beside.peek();
    if (known?.after === shown.id && known.before === other) return;
    beside.value = null;
    getComparison(shown.id, other).then(
      (found) => {
        if (report.peek()?.id === found.after && (comparedWith.peek() ?? shown.based_on) === found.before) beside.value = found;
      },
      (error: unknown) => {
        problem.value = whyNothingBeside(error);
        if (report.peek()?.id === shown.id && (comparedWith.peek() ?? shown.based_on) === other) notBeside.value = problem.value;
      },
    );
  });
}

/**
 * The page's only state. Views read these signals; `explore.ts` and the views' own events write them.
 *
 * While an exploration runs, `report` holds what has arrived of it and `previous` the one that was on screen: a pane
 * whose part has not arrived shows the previous one, greyed, so that the eye keeps its place. One that fails leaves
 * `previous` there for what it did not find out.
 */
import { batch, computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import type { Choices, Comparison, Example, Reason, Version } from "./api";
import { linking, Links, type Ref, refsOf } from "./links";
import type { Graph, Report } from "./report";
import { inSlices } from "./slices";
import { inAddress, number, oneOf, text } from "./view";

export const examples = signal<Example[]>([]);
export const reasons = signal<Map<string, Reason>>(new Map());
export const version = signal<Version | null>(null);
export const choices = signal<Choices | null>(null);

export const source = signal("");
export const report = signal<Report | null>(null);
export const previous = signal<Report | null>(null);
export const runningSince = signal<number | null>(null);
/** How many wait before it, while it waits. */
export const queuePosition = signal<number | null>(null);
/** While it runs: since when, where that is known, and how many seconds it may take. */
export const time = signal<{ since: number | null; limit: number } | null>(null);
/** When the stage that runs began: when the one before it ended. */
export const stageSince = signal<number | null>(null);
/** The server does not answer; when it is asked again, where the page and not the browser asks. */
export const offline = signal<{ retryAt: number | null } | null>(null);
/** What is wrong with the service or the request: not what is wrong with the snippet, which is a result. */
export const problem = signal<string | null>(null);
/** Said aloud by a screen reader. */
export const announcement = signal("");
/** Shown for a moment as well. */
export const flash = signal("");

export const isRunning = computed(() => runningSince.value !== null);
/** Line numbers of the report mean nothing in a text that has changed since. */
export const isEdited = computed(() => {
  const shown = report.value ?? previous.value;
  return shown !== null && !isRunning.value && shown.source !== source.value;
});

function isWhole({ status }: Report): boolean {
  return status === "ok" || status === "wrong_result";
}

export function isFailed({ status }: Pick<Report, "status">): boolean {
  return !["running", "ok", "wrong_result"].includes(status);
}

/** The report on screen beside the one that it is compared with, once that is known. */
export const beside = signal<Comparison | null>(null);

/** Why nothing could be put beside it. */
export const notBeside = signal<string | null>(null);

export const graphIndex = inAddress<number>("graph", 0, { read: number.read, write: String });

function graphOf(from: Report | null, index: number): Graph | null {
  return from?.graphs[index] ?? from?.graphs[0] ?? null;
}

/** The exploration that the panes show: what has arrived of the one that was asked for, or else the one before it. */
export const shownReport = computed(() => (report.value?.graphs.length ? report.value : (previous.value ?? report.value)));
/** Nothing came of what was asked for last, or nothing yet: the panes show the version before it. */
export const showsPrevious = computed(() => previous.value !== null && shownReport.value === previous.value);

export const graph = computed(() => graphOf(report.value, graphIndex.value));
export const previousGraph = computed(() => graphOf(previous.value, graphIndex.value));
/** The graph whose links light up: what is on screen, arrived or not yet. */
export const shownGraph = computed(() => graph.value ?? previousGraph.value);

export interface Shown {
  report: Report;
  graph: Graph;
  stale: boolean;
}

/** The newest report that has the part a pane shows; the previous one, marked stale, until that part arrives. */
export function newestWith(hasPart: (graph: Graph, report: Report) => boolean): Shown | null {
  const now = report.value;
  const current = graph.value;
  if (now && current && (isWhole(now) || hasPart(current, now))) {
    return { report: now, graph: current, stale: false };
  }
  const before = previous.value;
  const old = previousGraph.value;
  if (before && old) return { report: before, graph: old, stale: true };
  return now && current ? { report: now, graph: current, stale: false } : null;
}

/** The view that the drawer shows, by its id in `components/views.tsx`; null while the drawer is closed. */
export const drawer = inAddress<string | null>("show", null, text);
export type PhoneTab = "code" | "map" | "kernel" | "more";
/** On a screen that is too narrow for panes side by side: the one that it shows. */
export const phoneTab = inAddress<PhoneTab>("tab", "map", oneOf("code", "map", "kernel", "more"));
export const fxLevel = inAddress<"aten" | "fx">("level", "aten", oneOf("aten", "fx"));
/** The kernel that the reader picked, by its place; of ours or of the peer's, whichever are shown. */
export const kernelPicked = inAddress<number | null>("kernel", null, number);
/** The scheduler's round that the map shows of the selected graph, and the decisions of it; null for all of them. */
export const round = inAddress<number | null>("round", null, number);
export const compilerShown = inAddress<"ours" | "peer">("by", "ours", oneOf("ours", "peer"));
/** The side pane is there while a kernel is selected. */
export const sideIsOpen = computed(() => kernelPicked.value !== null);
let flashTimer = 0;

export function say(text: string): void {
  announcement.value = text;
  flash.value = text;
  window.clearTimeout(flashTimer);
  flashTimer = window.setTimeout(() => (flash.value = ""), 2500);
}

export const helpIsOpen = signal(false);

/** Opens the drawer at a view, and takes the keyboard there. */
export function openView(id: string): void {
  batch(() => {
    drawer.value = id;
    phoneTab.value = "more";
  });
  requestAnimationFrame(() => document.getElementById("drawer")?.focus());
}

/** Selects a kernel of ours or of the peer's: the side pane shows it. */
export function openKernel(place: number, compiler: "ours" | "peer" = "ours"): void {
  batch(() => {
    compilerShown.value = compiler;
    kernelPicked.value = place;
  });
}

/** Nothing is selected any more, and the side pane goes. */
export function release(): void {
  batch(() => {
    pinned.value = null;
    kernelPicked.value = null;
  });
}

/** Until the reader picks one: the kernel that fused most, where there is most to see. */
export const kernelShown = computed<number>(() => {
  const shown = newestWith((one) => one.kernels.length > 0);
  const kernels = (compilerShown.value === "peer" ? shown?.report.peer?.kernels : shown?.graph.kernels) ?? [];
  const picked = kernelPicked.value;
  if (picked !== null && picked < kernels.length) return picked;
  const most = Math.max(...kernels.map((kernel) => kernel.origins.length));
  return Math.max(0, kernels.findIndex((kernel) => kernel.origins.length === most));
});

/** What predictions speak of: without a GPU they are for the target that kernels are generated for. */
export const predictedFor = computed(() => {
  const now = report.value;
  // While it runs, what decides is known once the scheduler has begun.
  const isKnown = now !== null && (now.status !== "running" || now.environment.decides_for);
  const environment = (isKnown ? now : (previous.value ?? now))?.environment;
  if (!environment) return "";
  if (environment.decides_for) return environment.decides_for;
  return environment.device === "cpu" ? environment.target : environment.device_name || environment.device;
});

/** Refs of what the graph on screen has. */
export const refs = computed(() => refsOf(shownGraph.value ?? { name: "" }));

const found = signal(new Links());
/** Of every graph on screen, arrived or not yet. Those of a large report come a moment after it. */
export const links: ReadonlySignal<Links> = found;

effect(() => {
  const shown = shownReport.value;
  const next = new Links();
  return inSlices(shown ? linking(next, shown.graphs, shown.peer?.kernels) : [].values(), () => (found.value = next));
});

/** Lines that breaks, recompilations and guards speak of, whether or not an operator came of them. */
export const linesSpokenOf = computed<ReadonlySet<number>>(() => {
  const shown = report.value;
  const lines = [
    ...(shown?.breaks ?? []).map((found) => found.line),
    ...(shown?.graphs ?? []).flatMap((one) => one.recompiles.map((found) => found.line)),
    ...(shownGraph.value?.guards ?? []).flatMap((guard) => guard.lines),
  ];
  return new Set(lines.filter((line) => line !== null));
});
export const hovered = signal<Ref | null>(null);
export const pinned = inAddress<Ref | null>("at", null, text);
/** Two nodes of one graph, as loop nodes or operations, that the why card speaks of. */
export interface Pair {
  graph: string;
  a: string;
  b: string;
}

/** `graph_0/mul,sum_1` in the address. */
export const pair = inAddress<Pair | null>("why", null, {
  read: (found) => {
    const [, graph, a, b] = /^([^/]+)\/(.+),([^,]+)$/.exec(found) ?? [];
    return graph && a && b ? { graph, a, b } : null;
  },
  write: (value) => (value ? `${value.graph}/${value.a},${value.b}` : ""),
});
/** The reason whose page stands beside the why card. */
export const reasonShown = inAddress<string | null>("reason", null, text);
/** The exploration that the one on screen is compared with; without it, the one that it is based on. */
export const comparedWith = inAddress<string | null>("with", null, text);
export const focusOfLight = computed(() => pinned.value ?? hovered.value);

export const lit = computed<ReadonlySet<Ref>>(() => {
  const focus = focusOfLight.value;
  if (focus === null) return new Set<Ref>();
  return new Set([focus, ...links.value.partners(focus)]);
});

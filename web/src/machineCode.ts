/**
 * A kernel down to machine code: what the page asked for, and what came of it. It is compiled on demand, by an exploration
 * of its own; what was asked for once is kept while the page is open.
 */
import { type Signal, signal } from "@preact/signals";
import * as api from "./api";
import { isEmbedded } from "./embed";
import type { Kernel, MachineCode } from "./report";

export type Told =
  | { state: "compiling"; since: number }
  | { state: "done"; code: MachineCode }
  /** `again` says whether asking once more may help. */
  | { state: "failed"; message: string; again: boolean };

export interface Choice {
  target: string;
  label: string;
}

const GPUS: Choice[] = [
  { target: "sm_80", label: "A100 (sm_80)" },
  { target: "sm_90", label: "H100, H200 (sm_90)" },
  { target: "sm_100", label: "B200 (sm_100)" },
  { target: "gfx942", label: "MI300 (gfx942)" },
];
const HOST: Choice = { target: "host", label: "C++, this server" };

/** What a kernel can be compiled for: its own text first, then the one beside it. Pure. */
export function choicesFor(kernel: Kernel, reportTarget: string): Choice[] {
  const languages = [kernel.kind, ...kernel.also.map((one) => one.language)];
  const gpus = languages.includes("triton") || kernel.own ? GPUS : [];
  const isOther = /^sm_\d+$/.test(reportTarget) && gpus.length > 0 && !gpus.some(({ target }) => target === reportTarget);
  const found = isOther ? [{ target: reportTarget, label: reportTarget }, ...gpus] : gpus;
  if (!languages.includes("cpp")) return found;
  return kernel.kind === "cpp" ? [HOST, ...found] : [...found, HOST];
}

/** The one that the reader chose, if the kernel has it; else the one that ran, or that the report is for. Pure. */
export function targetOf(kernel: Kernel, reportTarget: string, chosen: string | null): string | null {
  const targets = choicesFor(kernel, reportTarget).map(({ target }) => target);
  const wanted = chosen !== null && targets.includes(chosen) ? chosen : kernel.kind === "cpp" ? "host" : reportTarget;
  return targets.includes(wanted) ? wanted : (targets[0] ?? null);
}

const MOST_KEPT = 40;
const WAIT_SECONDS = 20;
const kept = new Map<string, Signal<Told>>();

/** What is known of it now; the first who asks has it compiled. */
export function machineCodeOf(asked: api.KernelCode): Signal<Told> {
  const key = JSON.stringify(asked);
  const known = kept.get(key);
  if (known) return known;
  const told = signal<Told>({ state: "compiling", since: performance.now() });
  kept.set(key, told);
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  void ask(asked, told);
  return told;
}

export function askAgain(asked: api.KernelCode): void {
  const told = machineCodeOf(asked);
  if (told.value.state !== "failed") return;
  told.value = { state: "compiling", since: performance.now() };
  void ask(asked, told);
}

async function ask(asked: api.KernelCode, told: Signal<Told>): Promise<void> {
  if (isEmbedded()) {
    told.value = { state: "failed", message: "Machine code is compiled on demand, which an embedded page does not do: open the page itself.", again: false };
    return;
  }
  try {
    let found = await api.compileKernel(asked, WAIT_SECONDS);
    while (found.status === "running") found = await api.compileKernel(asked, WAIT_SECONDS);
    const message = found.error?.message ?? `The compilation ended as “${found.status}”.`;
    told.value = found.machine_code ? { state: "done", code: found.machine_code } : { state: "failed", message, again: found.status !== "user_error" };
  } catch (error) {
    told.value = { state: "failed", message: error instanceof Error ? error.message : String(error), again: true };
  }
}

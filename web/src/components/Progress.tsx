/** How far an exploration is: in a sentence, and the time of each stage until there is a verdict. */
import { useEffect, useState } from "preact/hooks";
import * as format from "../format";
import type { Report } from "../report";
import { previous, queuePosition, report, runningSince, stageSince, time } from "../state";

/** The compiler's stages, in their order. */
export const STAGES = ["capture", "lower", "schedule", "codegen", "run", "measure", "profile", "compare", "emulate"] as const;

/** Counts on while something runs. */
export function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = window.setInterval(() => setNow(performance.now()), 200);
    return () => window.clearInterval(timer);
  }, [isRunning]);
  return Math.max(now, performance.now());
}

/** What comes after the stages that are done. */
export function nextStage(done: readonly string[]): string | null {
  const last = STAGES.findLastIndex((name) => done.includes(name));
  return STAGES[last + 1] ?? null;
}

/** How long the stages that are left took the last time, of which the first has run for a while; null where that is not
 * known. */
export function restMs(done: readonly string[], before: Report | null, ranMs = 0): number | null {
  if (!before || before.stages.length < STAGES.length) return null;
  const left = before.stages.filter((stage) => !done.includes(stage.name));
  return left.reduce((sum, stage, place) => sum + Math.max(0, stage.ms - (place === 0 ? ranMs : 0)), 0);
}

function clock(now: number): string {
  if (time.value === null) return `${((now - (runningSince.value ?? now)) / 1000).toFixed(1)} s`;
  const { since, limit } = time.value;
  return since === null ? `running, at most ${limit} s` : `running ${((now - since) / 1000).toFixed(0)} s of ${limit}`;
}

/** "queued, 2 before this one", "running 12 s of 60 · schedule done · codegen next". */
export function progressText(now: number): string {
  if (time.value === null && queuePosition.value !== null)
    return queuePosition.value > 0 ? `queued, ${queuePosition.value} before this one` : "queued, next in line";
  const done = (report.value?.stages ?? []).map((stage) => stage.name);
  const last = done.at(-1);
  const next = nextStage(done);
  const rest = restMs(done, previous.value, stageSince.value === null ? 0 : now - stageSince.value);
  return [
    time.value === null && !last ? `starting, ${clock(now)}` : clock(now),
    last && `${last} done`,
    next && last && `${next} next`,
    rest !== null && rest > 1000 && `about ${Math.round(rest / 1000)} s left, by the last run`,
  ]
    .filter(Boolean)
    .join(" · ");
}

export function Progress() {
  const now = useNow(true);
  const hasVerdict = Boolean(report.value?.summary.verdict);
  const stages = report.value?.stages ?? [];
  const next = nextStage(stages.map((stage) => stage.name));
  return (
    <>
      <p class={hasVerdict ? "quiet" : "verdict"} data-running>
        <span class="spinner" aria-hidden="true" />
        {progressText(now)}
      </p>
      {!hasVerdict && (
        <ol class="stage-times" aria-label="Time of each stage">
          {stages.map((stage) => (
            <li key={stage.name} data-status={stage.status}>
              {stage.name} <b>{format.milliseconds(stage.ms)}</b>
            </li>
          ))}
          {next && time.value !== null && stageSince.value !== null && (
            <li data-status="running">
              {next} <b>{`${((now - stageSince.value) / 1000).toFixed(1)} s`}</b>
            </li>
          )}
        </ol>
      )}
    </>
  );
}

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as format from "../format";
import type { Report, Summary } from "../report";
import { beside, isRunning, openKernel, openView, previous, problem, queuePosition, report, runningSince, time } from "../state";
import { isWrong, timeLabel, wrongOf } from "../wrong";
import { GraphSelector } from "./GraphSelector";

interface Figure {
  id: string;
  label: string;
  value: ComponentChildren;
  open(): void;
  tone?: "good" | "bad" | undefined;
}

const open = (view: string) => (): void => openView(view);

function change(before: string, after: string): ComponentChildren {
  return before && after ? (
    <>
      {before} <span class="arrow" aria-label="to">→</span> <strong>{after}</strong>
    </>
  ) : (
    <strong>{after || before}</strong>
  );
}

/** Only what was found out: a figure that is null is left out. */
export function figuresOf(summary: Summary, shown: Report): Figure[] {
  const wrong = wrongOf(shown, "compiled");
  const figures: (Figure | false)[] = [
    wrong.length > 0 && {
      id: "wrong",
      label: "no time is given",
      value: <strong>{format.count(wrong.length, "wrong result")}</strong>,
      open: open("timing"),
      tone: "bad",
    },
    summary.kernels !== null && {
      id: "kernels",
      label: summary.eager_kernels === null ? "kernels" : "ops → kernels",
      value: change(summary.eager_kernels === null ? "" : format.count(summary.eager_kernels, "op"), format.count(summary.kernels, "kernel")),
      open: () => openKernel(0),
    },
    summary.peer_kernels !== null && {
      id: "peer-kernels",
      label: shown.peer?.name ?? "peer",
      value: format.count(summary.peer_kernels, "kernel"),
      open: () => openKernel(0, "peer"),
    },
    (summary.bytes !== null || summary.eager_bytes !== null) && {
      id: "bytes",
      label: summary.floor_bytes === null ? "bytes moved" : `bytes moved, at least ${format.bytes(summary.floor_bytes)}`,
      value: change(format.bytes(summary.eager_bytes), format.bytes(summary.bytes)),
      open: open("traffic"),
    },
    (summary.compiled_ms !== null || summary.eager_ms !== null) && {
      id: "time",
      label: timeLabel(shown, isWithinNoise(shown)),
      value: (
        <>
          {change(format.milliseconds(summary.eager_ms), format.milliseconds(summary.compiled_ms))}
          {summary.speedup !== null && ` (${format.ratio(summary.speedup)})`}
        </>
      ),
      open: open("timing"),
      tone: isWithinNoise(shown) ? undefined : toneOf(summary.speedup),
    },
    shown.status !== "running" && shown.graphs.length > 0 && {
      id: "breaks",
      label: summary.recompiles > 0 ? `graph breaks, ${format.count(summary.recompiles, "recompile")}` : "graph breaks",
      value: format.count(summary.graph_breaks, "break"),
      open: open("capture"),
      tone: summary.graph_breaks > 0 ? "bad" : undefined,
    },
    (summary.compiled_error !== null || wrong.length > 0) && {
      id: "error",
      label: "largest relative error",
      value: (
        <>
          <strong>{summary.compiled_error === null ? "cannot be compared" : format.scientific(summary.compiled_error)}</strong>
          {summary.eager_error !== null && ` (eager ${format.scientific(summary.eager_error)})`}
        </>
      ),
      open: open("stages"),
      tone: wrong.length > 0 ? "bad" : undefined,
    },
    shown.environment.device !== "" && {
      id: "device",
      label: shown.environment.device_name || "device",
      value: shown.environment.device.toUpperCase(),
      open: open("stages"),
    },
  ];
  return figures.filter((figure): figure is Figure => figure !== false);
}

/** Quartiles that overlap say that another run could turn the order round. */
function isWithinNoise({ timing }: Report): boolean {
  const [eager, compiled] = (["eager", "compiled"] as const).map((name) => timing?.contestants.find((one) => one.name === name));
  return eager !== undefined && compiled !== undefined && eager.low_ms <= compiled.high_ms && compiled.low_ms <= eager.high_ms;
}

/** Small differences get no colour. */
function toneOf(speedup: number | null): "good" | "bad" | undefined {
  if (speedup === null) return undefined;
  return speedup >= 1.05 ? "good" : speedup <= 0.95 ? "bad" : undefined;
}

function useSeconds(since: number | null): number {
  const [, tick] = useState(0);
  useEffect(() => {
    if (since === null) return undefined;
    const timer = window.setInterval(() => tick((beat) => beat + 1), 200);
    return () => window.clearInterval(timer);
  }, [since]);
  return since === null ? 0 : (performance.now() - since) / 1000;
}

/** Of a wrong result the verdict speaks first. */
const STATUS_WORDS: Record<Exclude<Report["status"], "ok" | "wrong_result">, string> = {
  running: "running",
  user_error: "the snippet failed",
  timeout: "out of time",
  out_of_memory: "out of memory",
  crashed: "the process crashed",
  cancelled: "cancelled",
  dropped: "nobody waited for it",
};

/** It says what cannot be: the verdict says so first. */
function isDoubted(shown: Report): boolean {
  return (shown.observed?.contradictions.length ?? 0) > 0;
}

/** How far it is: "queued, 2 before this one", "run done · 12 s of 60". */
function progress(lastStage: string | undefined, seconds: number): string {
  if (time.value === null && queuePosition.value !== null)
    return queuePosition.value > 0 ? `queued, ${queuePosition.value} before this one` : "queued, next in line";
  const done = lastStage ? `${lastStage} done` : time.value ? "running" : "starting";
  if (time.value === null) return `${done} · ${seconds.toFixed(1)} s`;
  const { since, limit } = time.value;
  return since === null ? `${done} · at most ${limit} s` : `${done} · ${((performance.now() - since) / 1000).toFixed(0)} s of ${limit}`;
}

export function AnswerBar() {
  const current = report.value;
  const seconds = useSeconds(runningSince.value);
  const isStale = isRunning.value && (current === null || current.summary.kernels === null) && previous.value !== null;
  const shown = isStale ? previous.value : current;
  const figures = shown ? figuresOf(shown.summary, shown) : [];
  const lastStage = current?.stages.at(-1)?.name;
  return (
    <section class="answer" aria-label="Answer">
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}{" "}
          <button type="button" onClick={() => (problem.value = null)} aria-label="Dismiss">
            ×
          </button>
        </p>
      )}
      <div class="figures" data-stale={isStale || undefined}>
        {figures.map((figure) => (
          <button type="button" class="figure" key={figure.id} data-figure={figure.id} data-tone={figure.tone} onClick={figure.open}>
            <span class="figure-value">{figure.value}</span>
            <span class="figure-label">{figure.label}</span>
          </button>
        ))}
        {figures.length === 0 && !isRunning.value && <span class="quiet">Paste PyTorch code and press Ctrl+Enter.</span>}
      </div>
      <div class="answer-line">
        <p class="verdict" data-tone={shown && (isWrong(shown) || isDoubted(shown)) && !isRunning.value ? "bad" : undefined}>
          {isRunning.value ? (
            <>
              <span class="spinner" aria-hidden="true" />
              {progress(lastStage, seconds)}
            </>
          ) : (
            shown && (
              <>
                {shown.status !== "ok" && shown.status !== "wrong_result" && <span class="status-chip">{STATUS_WORDS[shown.status]}</span>}{" "}
                {shown.error && !isWrong(shown) ? shown.error.message.split("\n")[0] : shown.summary.verdict}
              </>
            )
          )}
        </p>
        {beside.value && (
          <button type="button" class="beside" data-testid="beside" onClick={open("what-if")}>
            {`what if: ${beside.value.verdict}`}
          </button>
        )}
        <GraphSelector />
      </div>
    </section>
  );
}

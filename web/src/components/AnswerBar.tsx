import { stop, tryNow } from "../explore";
import type { Report } from "../report";
import { beside, isEdited, isFailed, isRunning, offline, openView, previous, problem, report, showsPrevious } from "../state";
import { statusOf, verdictOf } from "../verdict";
import { isWrong } from "../wrong";
import { type Figure, type FigureGroup, figuresOf, PLACES, subjectOf } from "./figures";
import { GraphSelector } from "./GraphSelector";
import { Progress, useNow } from "./Progress";
import { FigureChange } from "./why/FigureChange";

const GROUPS: readonly FigureGroup[] = ["counted", "measured", "predicted"];

/** It says what cannot be: the verdict says so first. */
function isDoubted(shown: Report): boolean {
  return (shown.observed?.contradictions.length ?? 0) > 0;
}

interface Placed {
  figure: Figure | (typeof PLACES)[number];
  /** Not known yet, or of the version before. */
  state: "known" | "stale" | "unknown";
}

/** What is known, each in its place; where it is not, the one before, and where there was none, a dash. */
function placed(now: Report | null, before: Report | null): Placed[] {
  const known = now ? figuresOf(now.summary, now) : [];
  // Beside a wrong result an older time would be read as its own.
  const old = before && !(now && isWrong(now)) ? figuresOf(before.summary, before) : [];
  const ids = [...new Set([...known, ...PLACES, ...old].map(({ id }) => id))];
  return ids.map((id) => {
    const [current, stale] = [known, old].map((all) => all.find((one) => one.id === id));
    const place = PLACES.find((one) => one.id === id);
    if (current) return { figure: current, state: "known" };
    if (stale) return { figure: stale, state: "stale" };
    return { figure: place!, state: "unknown" };
  });
}

/** The order of the places; what has none comes first where it is wrong, else after the last of its group. */
function inOrder(all: Placed[], group: FigureGroup): Placed[] {
  const rank = ({ figure }: Placed): number => {
    const order = ["wrong", "kernels", "peer-kernels", "bytes", "breaks", "time", "error", "predicted"];
    return order.indexOf(figure.id);
  };
  return all.filter(({ figure }) => figure.group === group).sort((one, other) => rank(one) - rank(other));
}

function FigureButton({ placed: { figure, state } }: { placed: Placed }) {
  if (!("value" in figure))
    return (
      <span class="figure" data-figure={figure.id} data-state="unknown">
        <span class="figure-value">–</span>
        <span class="figure-label">{figure.label}</span>
      </span>
    );
  return (
    <button type="button" class="figure" data-figure={figure.id} data-state={state} data-tone={figure.tone} onClick={figure.open}>
      <span class="figure-value">
        {figure.value}
        {state === "known" && <FigureChange id={figure.id} />}
      </span>
      <span class="figure-label" title={figure.label}>
        {figure.label}
      </span>
    </button>
  );
}

function Group({ name, figures, of }: { name: FigureGroup; figures: Placed[]; of: Report | null }) {
  const subject = of ? subjectOf(name, of) : { kind: "", name: "" };
  if (figures.length === 0) return null;
  return (
    <div class={`figure-group figure-group-${name}`} role="group" aria-label={[subject.kind || name, subject.name].filter(Boolean).join(" ")}>
      {subject.name && (
        <button type="button" class="figure subject" data-figure={name === "measured" ? "device" : "target"} onClick={() => openView("stages")}>
          <span class="figure-value">{subject.name}</span>
          <span class="figure-label">{subject.kind}</span>
        </button>
      )}
      {figures.map((one) => (
        <FigureButton key={one.figure.id} placed={one} />
      ))}
    </div>
  );
}

/** The server does not answer: what is on screen stays, and it is asked again. */
function Offline() {
  const now = useNow(true);
  const at = offline.value?.retryAt ?? null;
  const when = at === null ? "Trying again." : `Trying again in ${Math.max(0, Math.ceil((at - now) / 1000))} s.`;
  return (
    <p class="verdict offline" role="alert">
      <span class="status-chip">no answer</span>
      The server does not answer. What is on screen stays. {when}
      {at !== null && (
        <button type="button" onClick={tryNow}>
          Try now
        </button>
      )}
    </p>
  );
}

function Verdict({ hasStale }: { hasStale: boolean }) {
  const shown = report.value;
  if (!shown) return <p class="verdict quiet">Paste PyTorch code on the left, or choose an example.</p>;
  return (
    <p class="verdict" data-tone={isWrong(shown) || isDoubted(shown) ? "bad" : undefined}>
      {isFailed(shown) && <span class="status-chip" data-status={shown.status}>{statusOf(shown)}</span>} {verdictOf(shown)}
      {hasStale && !isRunning.value && <span class="quiet"> What is grey is from the exploration before.</span>}
      {isEdited.value && <span class="quiet"> The snippet has changed since.</span>}
    </p>
  );
}

export function AnswerBar() {
  const now = report.value?.graphs.length || !isFailed(report.value ?? { status: "ok" }) ? report.value : null;
  const before = previous.value;
  const figures = placed(now, before);
  /** What a group speaks of: that which its figures are of. */
  const subjectIn = (group: Placed[]): Report | null => (before && !group.some(({ state }) => state === "known") ? before : now?.environment.device ? now : before);
  return (
    <section class="answer" aria-label="Answer" data-stale-figures={showsPrevious.value || undefined}>
      {problem.value !== null && (
        <p class="problem" role="alert">
          <span>{problem.value}</span>
          <button type="button" onClick={() => (problem.value = null)} aria-label="Dismiss">
            ×
          </button>
        </p>
      )}
      <div class="figures">
        {GROUPS.map((name) => {
          const group = inOrder(figures, name);
          return <Group key={name} name={name} figures={group} of={subjectIn(group)} />;
        })}
      </div>
      <div class="answer-line">
        {offline.value ? <Offline /> : (!isRunning.value || report.value?.summary.verdict) && <Verdict hasStale={showsPrevious.value || figures.some(({ state }) => state === "stale")} />}
        {isRunning.value && !offline.value && <Progress />}
        {isRunning.value && (
          <button type="button" class="stop" onClick={() => void stop()} data-action="stop">
            Stop
          </button>
        )}
        {beside.value && (
          <button type="button" class="beside" data-testid="beside" title={beside.value.verdict} onClick={() => openView("compare")}>
            {`Beside the other: ${beside.value.verdict}`}
          </button>
        )}
        <GraphSelector />
      </div>
    </section>
  );
}

/**
 * The figures of the answer bar. They stand in three groups, so that what was counted, what was measured on a device and
 * what a model predicts for another one are never read as one row.
 */
import type { ComponentChildren } from "preact";
import { slowedBy } from "../clocks";
import * as format from "../format";
import type { Contestant, Report, Stage, Summary } from "../report";
import { openKernel, openView } from "../state";
import { isWrong, timeLabel, wrongOf } from "../wrong";

export type FigureGroup = "counted" | "measured" | "predicted";

export interface Figure {
  id: string;
  group: FigureGroup;
  label: string;
  value: ComponentChildren;
  open(): void;
  tone?: "good" | "bad" | undefined;
}

/** These have their place from the beginning: what is not known yet is a dash. */
export const PLACES: readonly Pick<Figure, "id" | "group" | "label">[] = [
  { id: "kernels", group: "counted", label: "kernels" },
  { id: "bytes", group: "counted", label: "bytes moved" },
  { id: "breaks", group: "counted", label: "graph breaks" },
  { id: "time", group: "measured", label: "eager → compiled" },
  { id: "error", group: "measured", label: "largest relative error" },
];

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
  return [...countedOf(summary, shown), ...measuredOf(summary, shown), ...predictedOf(shown)];
}

function countedOf(summary: Summary, shown: Report): Figure[] {
  const wrong = wrongOf(shown, "compiled");
  const figures: (Omit<Figure, "group"> | false)[] = [
    wrong.length > 0 && {
      id: "wrong",
      label: "no time is given",
      value: <strong>{format.count(wrong.length, "wrong result")}</strong>,
      open: open("timing"),
      tone: "bad",
    },
    summary.kernels !== null && {
      id: "kernels",
      label: summary.eager_kernels === null ? "kernels" : "kernels, eager → ours",
      value: change(summary.eager_kernels === null ? "" : summary.eager_kernels.toLocaleString("en-US"), format.count(summary.kernels, "kernel")),
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
    shown.graphs.length > 0 && {
      id: "breaks",
      label: summary.recompiles > 0 ? `graph breaks, ${format.count(summary.recompiles, "recompile")}` : "graph breaks",
      value: format.count(summary.graph_breaks, "break"),
      open: open("capture"),
      tone: summary.graph_breaks > 0 ? "bad" : undefined,
    },
  ];
  return inGroup("counted", figures);
}

function measuredOf(summary: Summary, shown: Report): Figure[] {
  const isWrongResult = isWrong(shown);
  const untimed = untimedIn(summary, shown);
  const compiled = contestant(shown, "compiled");
  const differs = compiled?.differs_from_eager;
  const spread = isWrongResult ? "" : spreadText(shown);
  const [inRatio, within] = format.ratioWithin(summary.speedup ?? 1, compiled?.ratio_factor);
  const { eager_error: eager, allowed_error: allowed } = summary;
  const beside = [eager != null && `eager ${format.scientific(eager)}`, allowed != null && `${format.scientific(allowed)} allowed`].filter(Boolean);
  const figures: (Omit<Figure, "group"> | false)[] = [
    (summary.compiled_ms !== null || summary.eager_ms !== null) && {
      id: "time",
      label: timeLabel(shown),
      value: (
        <>
          {change(format.milliseconds(summary.eager_ms), format.milliseconds(summary.compiled_ms))}
          {spread && <span class="spread" title="The difference to expect from the median of another run, 95 times in 100">{` ${spread}`}</span>}
          {summary.speedup !== null && differs === true && (
            <span title="Eager's time over ours, of interleaved calls, and the difference to expect in another run">
              {` (${inRatio}`}
              <span class="spread">{within}</span>
              {")"}
            </span>
          )}
          {slowedBy(shown) && (
            <span class="chip chip-warn" title={`The GPU was slowed while it was timed: ${slowedBy(shown)}`}>
              slowed GPU
            </span>
          )}
        </>
      ),
      open: open("timing"),
      tone: differs === true ? toneOf(summary.speedup) : undefined,
    },
    untimed !== undefined && {
      id: "time",
      label: "eager → compiled",
      value: "not timed",
      open: open(untimed.message ? "stages" : "notes"),
    },
    wasRunUncompared(summary, shown) && {
      id: "error",
      label: "largest relative error",
      value: "not compared",
      open: open("notes"),
    },
    (summary.compiled_error !== null || isWrongResult) && {
      id: "error",
      label: "largest relative error",
      value: (
        <>
          <strong>{summary.compiled_error === null ? "cannot be compared" : format.scientific(summary.compiled_error)}</strong>
          {beside.length > 0 && ` (${beside.join(", ")})`}
        </>
      ),
      open: open("errors"),
      tone: isWrongResult ? "bad" : undefined,
    },
  ];
  return inGroup("measured", figures);
}

/** The stage that was to time the calls and did not, as where each compiles anew. It says why, or else a note does. */
function untimedIn({ compiled_ms, eager_ms }: Summary, shown: Report): Stage | undefined {
  if (compiled_ms !== null || eager_ms !== null || isWrong(shown) || shown.status !== "ok") return undefined;
  return shown.stages.find(({ name, status }) => name === "measure" && status === "done");
}

/** Compiled and run, and not compared with eager, as where each draws random numbers of its own. A note says why. */
function wasRunUncompared({ compiled_error }: Summary, shown: Report): boolean {
  return compiled_error === null && !isWrong(shown) && shown.status === "ok" && shown.stages.some(({ name, status }) => name === "run" && status === "done");
}

/** Of the generated kernels alone, in a row, with the gaps between them: what library calls take is not predicted. */
function predictedOf(shown: Report): Figure[] {
  const known = shown.graphs.map((graph) => graph.predicted_us).filter((us) => us != null);
  if (known.length === 0 || known.length < shown.graphs.length) return [];
  const figure = {
    id: "predicted",
    label: "generated kernels",
    value: <em title="One after another, with the gaps between them. Library calls are not predicted.">{format.microseconds(known.reduce((sum, us) => sum + us, 0))}</em>,
    open: () => openKernel(0),
  };
  return inGroup("predicted", [figure]);
}

function inGroup(group: FigureGroup, figures: (Omit<Figure, "group"> | false)[]): Figure[] {
  return figures.filter((figure) => figure !== false).map((figure) => ({ ...figure, group }));
}

function contestant({ timing }: Report, name: Contestant["name"]): Contestant | undefined {
  return timing?.contestants.find((one) => one.name === name);
}

/** The quartiles of fewer samples tell no spread. */
const FEWEST_SAMPLES = 4;

/** Such as "± 1.7 %": by how much the median of the compiled calls may differ in another run. Reports of older versions
 * have half of the distance between the quartiles. Few samples show none. */
export function spreadText(shown: Report): string {
  const compiled = contestant(shown, "compiled");
  if (!compiled || compiled.median_ms <= 0) return "";
  if (compiled.samples_ms.length < FEWEST_SAMPLES) return format.count(compiled.samples_ms.length, "sample");
  return format.plusMinus((compiled.spread_ms ?? (compiled.high_ms - compiled.low_ms) / 2) / compiled.median_ms);
}

/** " ± 1.7 %": by how much the ratio to eager's time may differ in another run; empty where that is not known. */
export function withinFactor(one: Contestant | undefined): string {
  return one?.ratio_factor == null ? "" : ` ${format.within(one.ratio_factor)}`;
}

/** Small differences get no colour. */
function toneOf(speedup: number | null): "good" | "bad" | undefined {
  if (speedup === null) return undefined;
  return speedup >= 1.05 ? "good" : speedup <= 0.95 ? "bad" : undefined;
}

/** What a group's figures speak of; empty where nothing is known of it. */
export function subjectOf(group: FigureGroup, shown: Report): { name: string; kind: string } {
  const { device, device_name: name, decides_for: decidesFor, target } = shown.environment;
  if (group === "measured") return { kind: `measured on ${device.toUpperCase()}`, name: name || device };
  if (group === "predicted") return { kind: "predicted for", name: decidesFor || (device === "cpu" ? target : name || device) };
  return { kind: "", name: "" };
}

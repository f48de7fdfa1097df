import * as format from "../../format";
import type { Graph, Report } from "../../report";
import { predictedFor } from "../../state";
import { inAddress, oneOf } from "../../view";
import { Empty, Scroller } from "../Scroller";
import { useWidth } from "./useWidth";
import { type Bar, bytesOf, type Lane, measuredOf, predictedOf, recordedOf, stagesOf, ticksUpTo, type Timeline as Lanes } from "./lanes";

type Way = "recorded" | "measured" | "predicted" | "bytes";

/** What the axis is; null for the best that there is. */
const axis = inAddress<Way | "">("axis", "", oneOf("recorded", "measured", "predicted", "bytes"));

const WIDTH = 1000;
const NARROWEST = 560;
/** The room for names of lanes. */
const LEFT = 140;
const RIGHT = 34;
const ROW = 22;
const GAP = 12;
const CHARACTER = 6.6;

function fitted(text: string, width: number): string {
  const room = Math.floor((width - 8) / CHARACTER);
  if (text.length <= room) return text;
  return room < 4 ? "" : `${text.slice(0, Math.ceil(room / 2) - 1)}…${text.slice(text.length - Math.floor(room / 2))}`;
}

function labelOf(bar: Bar, width: number): string {
  return bar.place === null ? fitted(bar.label, width) : fitted(`K${bar.place + 1} ${bar.label}`, width) || fitted(`K${bar.place + 1}`, width + 6);
}

function BarOf({ bar, y, x, basis }: { bar: Bar; y: number; x(value: number): number; basis: Lane["basis"] }) {
  const width = Math.max(1, x(bar.from + bar.length) - x(bar.from) - 1);
  const color = bar.place === null ? "no-kernel" : `kernel-${bar.place % 8}`;
  return (
    <g class={`time-bar ${color} basis-${basis}`} data-ref={bar.ref}>
      <title>{bar.hint}</title>
      <rect x={x(bar.from)} y={y + 1} width={width} height={ROW - 2} rx={2} />
      {basis === "predicted" && <rect class="hatch" x={x(bar.from)} y={y + 1} width={width} height={ROW - 2} rx={2} />}
      <text x={x(bar.from) + 5} y={y + ROW / 2 + 4}>
        {labelOf(bar, width)}
      </text>
    </g>
  );
}

/** Lanes on one axis that begins at zero. */
function Chart({ lanes, most, write, label }: { lanes: Lane[]; most: number; write(value: number): string; label: string }) {
  const { ref, width: room } = useWidth<HTMLDivElement>(WIDTH);
  const width = Math.max(room, NARROWEST);
  const x = (value: number): number => LEFT + (value / most) * (width - LEFT - RIGHT);
  const heights = lanes.map((lane) => lane.rows.length * ROW + GAP);
  const tops = heights.map((_unused, index) => heights.slice(0, index).reduce((sum, one) => sum + one, GAP / 2));
  const bottom = heights.reduce((sum, one) => sum + one, GAP / 2);
  return (
    <div class="time-room" ref={ref}>
      <svg class="time-chart" width={width} height={bottom + 18} role="img" aria-label={label}>
        <defs>
          <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <line x1="0" x2="0" y1="0" y2="6" />
          </pattern>
        </defs>
        {ticksUpTo(most).map((tick) => (
          <g key={tick} class="tick">
            <line x1={x(tick)} x2={x(tick)} y1={0} y2={bottom} />
            <text x={x(tick)} y={bottom + 12}>
              {tick === 0 ? "0" : write(tick)}
            </text>
          </g>
        ))}
        {lanes.map((lane, index) => (
          <g key={`${lane.name} ${lane.basis}`}>
            <text class={`lane-name basis-${lane.basis}`} x={LEFT - 10} y={(tops[index] ?? 0) + ROW / 2 + 4}>
              {lane.name}
            </text>
            {lane.rows.map((row, place) =>
              row.map((bar) => <BarOf key={`${place} ${bar.from} ${bar.label}`} bar={bar} y={(tops[index] ?? 0) + place * ROW} x={x} basis={lane.basis} />),
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function sentenceOf(way: Way, report: Report): string {
  const { device, device_name: name, threads } = report.environment;
  if (way === "recorded") return "One call of eager and one of each graph, as torch's profiler recorded them. The profiler takes time of its own.";
  if (way === "bytes") return "Bytes that each launch moves, counted from shapes. Where memory is the limit, the width of a bar is its cost.";
  if (way === "predicted") return `Predicted by the cost model for ${predictedFor.value}: nothing here was measured.`;
  return `Measured on ${name || device}${threads === null ? "" : `, ${format.count(threads, "thread")}`}: each kernel alone, in launch order. Gaps between launches are not known.`;
}

const LABELS: Record<Way, string> = { recorded: "recorded", measured: "measured time", predicted: "predicted time", bytes: "bytes" };

/** Eager's launches above ours on one axis, and below where the time of the exploration itself went. */
export function Timeline({ graph, report }: { graph: Graph; report: Report }) {
  const all: Record<Way, Lanes> = {
    recorded: recordedOf(report, format.microseconds),
    measured: measuredOf(graph, report, format.microseconds),
    predicted: predictedOf(graph, format.microseconds),
    bytes: bytesOf(graph, format.bytes),
  };
  const ways = (["recorded", "measured", "predicted", "bytes"] as const).filter((way) => all[way].lanes.length > 0);
  const way = ways.find((one) => one === axis.value) ?? ways[0];
  const stages = stagesOf(report, format.microseconds);
  if (!way) return <Empty>Nothing was measured, predicted or counted yet.</Empty>;
  const { lanes, most, missing } = all[way];
  return (
    <div class="timeline">
      <div class="filters">
        <div class="toggle" role="group" aria-label="Axis">
          {ways.map((one) => (
            <button type="button" key={one} aria-pressed={one === way} onClick={() => (axis.value = one)}>
              {LABELS[one]}
            </button>
          ))}
        </div>
        <p class={way === "predicted" ? "predicted-text" : "quiet"}>{[sentenceOf(way, report), ...missing].join(" ")}</p>
      </div>
      <Scroller label="Lanes of the timeline">
        <Chart lanes={lanes} most={most} write={way === "bytes" ? format.bytes : format.microseconds} label={`${graph.name}: ${LABELS[way]} of ${lanes.map((lane) => lane.name).join(", ")}`} />
        {stages && (
          <>
            <h3 class="view-heading">Where this exploration's own time went</h3>
            <Chart lanes={[stages]} most={Math.max(1, ...stages.rows.flat().map((bar) => bar.from + bar.length))} write={format.microseconds} label="Stages of the exploration" />
          </>
        )}
      </Scroller>
    </div>
  );
}

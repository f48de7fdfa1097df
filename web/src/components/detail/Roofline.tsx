import * as format from "../../format";
import type { Graph, Report } from "../../report";
import { inAddress, oneOf } from "../../view";
import { KernelTag } from "../KernelTag";
import { Empty, Scroller } from "../Scroller";
import { Name } from "../Name";
import { along, decades, isAbove, ridgeOf, roofAt, rooflineOf, type Point, type Roofline as Picture } from "./roof";
import { Table } from "./Table";
import { useWidth } from "./useWidth";

const basisShown = inAddress<"" | "measured" | "predicted">("roof", "", oneOf("measured", "predicted"));

const WIDEST = 560;
const HEIGHT = 194;
const LEFT = 78;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 38;

const rateOf = (gflop: number): string => format.operations(gflop * 1e9, "/s");

interface Label {
  names: string[];
  x: number;
  y: number;
}

/** A label for each point; points that lie on each other share one. */
function labelsOf(points: readonly Point[], x: (point: Point) => number, y: (point: Point) => number): Label[] {
  const labels: Label[] = [];
  for (const point of points) {
    const near = labels.find((one) => Math.abs(one.x - x(point)) < 44 && Math.abs(one.y - y(point)) < 11);
    if (near) near.names.push(`K${point.place + 1}`);
    else labels.push({ names: [`K${point.place + 1}`], x: x(point), y: y(point) });
  }
  return labels;
}

function Plot({ picture }: { picture: Picture }) {
  const { peak, points } = picture;
  const { ref, width: room } = useWidth<HTMLDivElement>(WIDEST);
  const width = Math.min(room, WIDEST);
  const ridge = ridgeOf(peak);
  const across = decades([...points.map((point) => point.intensity), ridge * 2, ridge / 10]);
  const up = decades([...points.map((point) => point.gflopPerSecond), peak.gflop_per_s, roofAt(peak, across.from)]);
  const x = (value: number): number => LEFT + along(across, value) * (width - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - along(up, value) * (HEIGHT - TOP - BOTTOM);
  const roof = [across.from, ridge, across.to].map((value) => `${x(value)},${y(roofAt(peak, value))}`).join(" ");
  return (
    <div class="roof-room" ref={ref}>
      <svg class="roof-chart" width={width} height={HEIGHT} role="img" aria-label={`Operations a second by operations a byte, ${picture.basis}; the table has the same`}>
        {across.ticks.map((tick) => (
          <g key={`x${tick}`} class="tick">
            <line x1={x(tick)} x2={x(tick)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text x={x(tick)} y={HEIGHT - BOTTOM + 13}>
              {tick >= 1 ? tick.toLocaleString("en-US") : tick}
            </text>
          </g>
        ))}
        {up.ticks.map((tick) => (
          <g key={`y${tick}`} class="tick">
            <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text class="tick-y" x={LEFT - 6} y={y(tick) + 4}>
              {rateOf(tick)}
            </text>
          </g>
        ))}
        <text class="axis-name" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 6}>
          operations a byte
        </text>
        <polyline class="roof" points={roof} />
        {points.map((point) => (
          <g key={point.place} class={`roof-point kernel-${point.place % 8} basis-${picture.basis}`} data-ref={point.ref}>
            <title>{`K${point.place + 1} ${point.kernel.name}: ${rateOf(point.gflopPerSecond)}, ${isAbove(point, picture.peak) ? "more than is assumed to be possible" : `${format.percent(point.percent)} of what is possible`} at ${format.figure(point.intensity)} operations a byte`}</title>
            <circle cx={x(point.intensity)} cy={y(point.gflopPerSecond)} r={5} />
          </g>
        ))}
        {labelsOf(points, (point) => x(point.intensity), (point) => y(point.gflopPerSecond)).map((label) => (
          <text key={label.names.join()} class={`roof-label basis-${picture.basis}`} x={label.x + 8} y={label.y + 4}>
            {label.names.length > 2 ? `${label.names[0]} and ${label.names.length - 1} more` : label.names.join(", ")}
          </text>
        ))}
      </svg>
    </div>
  );
}

/** What bounds it: memory to the left of the ridge, arithmetic to the right. */
function boundOf(point: Point, picture: Picture): string {
  return point.intensity < ridgeOf(picture.peak) ? "memory" : "arithmetic";
}

function Rows({ picture }: { picture: Picture }) {
  const isPredicted = picture.basis === "predicted";
  return (
    <Table
      id="roofline"
      label={`The rate of each kernel, ${picture.basis}`}
      rows={[...picture.points, ...picture.withoutOperations].sort((one, other) => one.place - other.place)}
      keyOf={(point) => point.place}
      refOf={(point) => point.ref}
      columns={[
        { id: "kernel", head: "kernel", by: (point) => point.place, cell: (point) => <span class="nowrap"><KernelTag place={point.place} /><Name text={point.kernel.name} /></span> },
        { id: "share", head: "of the roof", hint: "Its rate, as a share of the device's limit at its intensity", isNumber: true, isPredicted, by: (point) => point.percent, cell: (point) => (isAbove(point, picture.peak) ? "above" : format.percent(point.percent)) },
        { id: "bound", head: "bound by", by: (point) => boundOf(point, picture), cell: (point) => boundOf(point, picture) },
        { id: "time", head: picture.basis, isNumber: true, isPredicted, by: (point) => point.us, cell: (point) => format.microseconds(point.us) },
        { id: "rate", head: "GB/s", isNumber: true, isPredicted, by: (point) => point.gbPerSecond, cell: (point) => format.rate(point.gbPerSecond) },
        { id: "operations", head: "operations", isNumber: true, isExtra: true, by: (point) => point.kernel.flops, cell: (point) => (point.kernel.flops ? format.operations(point.kernel.flops) : "none") },
        { id: "intensity", head: "a byte", hint: "Operations by byte moved", isNumber: true, isExtra: true, by: (point) => point.intensity, cell: (point) => format.figure(point.intensity) },
      ]}
    />
  );
}

function PeakSentence({ picture }: { picture: Picture }) {
  const { peak, basis, unknown } = picture;
  const bandwidth = `${format.rate(peak.gb_per_s)} GB/s (${peak.is_measured ? "measured" : "assumed"})`;
  const operations = `${rateOf(peak.gflop_per_s)} in float32 (${peak.is_measured ? "data sheet" : "assumed"})`;
  const half = peak.half_product_gflop_per_s;
  return (
    <p class={basis === "predicted" ? "predicted-text" : "quiet"} title={half === null ? undefined : `Its tensor cores do ${rateOf(half)} on half types`}>
      {`${basis === "predicted" ? "Predicted for" : "Measured on"} ${peak.device}. The roof: ${bandwidth}, ${operations}.`}
      {[...picture.points, ...picture.withoutOperations].some((point) => isAbove(point, peak)) && " Kernels stand above it: this device does more than is assumed."}
      {unknown > 0 && ` ${unknown === 1 ? "1 launch has" : `${unknown} launches have`} no time or count, and no point.`}
    </p>
  );
}

/** Each kernel under the roof of the device: how much of what is possible it reached, and what bounds it. */
export function Roofline({ graph, report }: { graph: Graph; report: Report }) {
  const pictures = (["measured", "predicted"] as const).flatMap((basis) => rooflineOf(graph, report, basis) ?? []);
  const picture = pictures.find(({ basis }) => basis === basisShown.value) ?? pictures[0];
  if (!picture) return <Empty>{graph.disturbed ?? "No kernel has a time, bytes and operations, on a device whose peaks are known."}</Empty>;
  return (
    <div class="roofline">
      <div class="filters">
        {pictures.length > 1 && (
          <div class="toggle" role="group" aria-label="Times">
            {pictures.map(({ basis }) => (
              <button type="button" key={basis} aria-pressed={basis === picture.basis} onClick={() => (basisShown.value = basis)}>
                {basis}
              </button>
            ))}
          </div>
        )}
        <PeakSentence picture={picture} />
      </div>
      <Scroller label="Kernels under the roof">
        <div class="roof-columns">
          {picture.points.length > 0 && <Plot picture={picture} />}
          <Rows picture={picture} />
        </div>
      </Scroller>
    </div>
  );
}

import * as format from "../format";
import type { SweepResult } from "../report";
import { predictedFor } from "../state";
import { type Curve, curvesOf, isFlipping } from "../sweep";

const WIDTH = 460;
const HEIGHT = 230;
const LEFT = 58;
const RIGHT = 14;
const TOP = 20;
const BOTTOM = 38;

/** A logarithmic axis from the least to the greatest value, of `from` to `to` pixels. */
function axis(values: number[], from: number, to: number): (value: number) => number {
  const low = Math.log(Math.min(...values));
  const high = Math.log(Math.max(...values));
  return (value) => (high === low ? (from + to) / 2 : from + ((Math.log(value) - low) / (high - low)) * (to - from));
}

/** Powers of ten between two values, and the values themselves where there is none. */
function ticks(values: number[]): number[] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const powers: number[] = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.floor(Math.log10(high)); power += 1) powers.push(10 ** power);
  return powers.length > 0 ? powers : [low, high];
}

function legendOf(id: Curve["id"], device: string): string {
  if (id === "predicted") return `kernels, predicted for ${predictedFor.value}`;
  return `${id === "measured" ? "kernels" : id}, measured on ${device}`;
}

/** Sizes whose labels would not run into each other. */
function labelled(values: number[], x: (value: number) => number): Set<number> {
  const chosen: number[] = [];
  for (const value of values) {
    const last = chosen.at(-1);
    if (last === undefined || x(value) - x(last) > 42) chosen.push(value);
  }
  return new Set(chosen);
}

export function SweepPlot({ sweep, device }: { sweep: SweepResult; device: string }) {
  const curves = curvesOf(sweep);
  const times = curves.flatMap((curve) => curve.points.map(([, time]) => time));
  const sizes = sweep.sizes.map((size) => size.value).filter((value) => value > 0);
  if (times.length === 0) return null;
  const x = axis(sizes, LEFT, WIDTH - RIGHT);
  const y = axis(times, HEIGHT - BOTTOM, TOP);
  const shown = labelled(sizes, x);
  const flipping = sweep.sizes.filter((size) => size.value > 0 && isFlipping(size));
  const where = flipping.length > 0 ? `; something flips at ${flipping.map((size) => size.value).join(", ")}` : "";
  return (
    <figure class="sweep-plot">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Times over ${sweep.name}, both by their logarithms${where}`}>
        {ticks(times).map((tick) => (
          <g key={tick} class="tick">
            <line x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text class="tick-time" x={LEFT - 6} y={y(tick) + 4}>{format.microseconds(tick)}</text>
          </g>
        ))}
        {sizes.map((size) => (
          <g key={size} class="tick">
            <line x1={x(size)} x2={x(size)} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM + 4} />
            {shown.has(size) && <text x={x(size)} y={HEIGHT - BOTTOM + 16}>{size}</text>}
          </g>
        ))}
        <text class="axis-name" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 6}>{sweep.name}</text>
        {flipping.map((size) => (
          <g key={size.value} class="flip-mark" data-flip={size.value}>
            <title>{`${sweep.name} = ${size.value}: ${format.count(size.flips.length + size.more_flips, "flip")}`}</title>
            <line x1={x(size.value)} x2={x(size.value)} y1={TOP - 4} y2={HEIGHT - BOTTOM} />
            <text x={x(size.value)} y={TOP - 8}>flips</text>
          </g>
        ))}
        {curves.map((curve) => (
          <g key={curve.id} class={`curve curve-${curve.id}`}>
            <polyline points={curve.points.map(([size, time]) => `${x(size)},${y(time)}`).join(" ")} />
            {curve.points.map(([size, time]) => (
              <circle key={size} cx={x(size)} cy={y(time)} r={3}>
                <title>{`${sweep.name} = ${size}: ${legendOf(curve.id, device)}: ${format.microseconds(time)}`}</title>
              </circle>
            ))}
          </g>
        ))}
      </svg>
      <figcaption>
        {curves.map((curve) => (
          <span key={curve.id} class={`legend curve-${curve.id}`}>{legendOf(curve.id, device)}</span>
        ))}
      </figcaption>
    </figure>
  );
}

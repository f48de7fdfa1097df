import * as format from "../../format";
import type { Contestant, Report } from "../../report";
import { wrongOf } from "../../wrong";
import { Head } from "../Head";
import { Empty, Scroller } from "../Scroller";
import { WrongResults } from "../WrongResults";

const WIDTH = 760;
const ROW = 44;
const LEFT = 104;
const RIGHT = 20;

const NAMES: Record<Contestant["name"], string> = { eager: "eager", compiled: "compiled", peer: "TorchInductor" };

function ticksUpTo(largest: number): number[] {
  const rough = largest / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? power;
  return Array.from({ length: Math.floor(largest / step) + 1 }, (_unused, index) => index * step);
}

/** Points of one contestant are spread a little in height, always the same way, so that equal samples stay apart. */
function spread(index: number): number {
  return ((index * 37) % 17) - 8;
}

function Strip({ contestants }: { contestants: Contestant[] }) {
  const largest = Math.max(...contestants.flatMap((one) => one.samples_ms), 1e-6) * 1.03;
  const x = (value: number): number => LEFT + (value / largest) * (WIDTH - LEFT - RIGHT);
  const height = contestants.length * ROW + 24;
  const summary = contestants.map((one) => `${NAMES[one.name]}: median ${format.milliseconds(one.median_ms)}`).join("; ");
  return (
    <svg class="strip" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`Every sample, from zero. ${summary}`}>
      {ticksUpTo(largest).map((tick) => (
        <g key={tick} class="tick">
          <line x1={x(tick)} x2={x(tick)} y1={2} y2={height - 18} />
          <text x={x(tick)} y={height - 5}>
            {tick === 0 ? "0" : format.milliseconds(tick)}
          </text>
        </g>
      ))}
      {contestants.map((one, index) => {
        const middle = index * ROW + ROW / 2 + 2;
        return (
          <g key={one.name} class={`contestant contestant-${one.name}`}>
            <text class="contestant-name" x={LEFT - 10} y={middle + 4}>
              {NAMES[one.name]}
            </text>
            <rect class="quartiles" x={x(one.low_ms)} width={Math.max(1, x(one.high_ms) - x(one.low_ms))} y={middle - 13} height={26} />
            {one.samples_ms.map((sample, place) => (
              <circle key={place} cx={x(sample)} cy={middle + spread(place)} r={2.2} />
            ))}
            <line class="median" x1={x(one.median_ms)} x2={x(one.median_ms)} y1={middle - 16} y2={middle + 16} />
          </g>
        );
      })}
    </svg>
  );
}

export function Timing({ report }: { report: Report }) {
  const { timing, summary } = report;
  const wrong = [...wrongOf(report, "compiled"), ...wrongOf(report, "peer")];
  if (!timing || timing.contestants.length === 0) {
    return wrong.length > 0 ? <WrongResults wrong={wrong} /> : <Empty>No times were taken.</Empty>;
  }
  return (
    <Scroller label="Timing" class="timing">
      <div class="timing-plot">
        <WrongResults wrong={wrong} />
        <Strip contestants={timing.contestants} />
        <p class="method">{timing.method}</p>
      </div>
      <table class="compact">
        <caption class="visually-hidden">Medians and quartiles, measured</caption>
        <Head columns={["measured", "median", "25–75 %", "samples", "compile"]} numbers={["median", "25–75 %", "samples", "compile"]} />
        <tbody>
          {timing.contestants.map((one) => (
            <tr key={one.name}>
              <th scope="row">{NAMES[one.name]}</th>
              <td class="number">
                <strong>{format.milliseconds(one.median_ms)}</strong>
              </td>
              <td class="number">{`${format.milliseconds(one.low_ms)} – ${format.milliseconds(one.high_ms)}`}</td>
              <td class="number">{one.samples_ms.length}</td>
              <td class="number">{one.compile_s === null ? "" : `${one.compile_s.toFixed(1)} s`}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td colSpan={5}>
              {summary.speedup !== null && `compiled is ${format.ratio(summary.speedup)} as fast as eager · `}
              {timing.device}
              {timing.device !== "cpu" && (timing.cold_l2 ? " · cold L2" : " · warm L2")}
            </td>
          </tr>
        </tfoot>
      </table>
    </Scroller>
  );
}

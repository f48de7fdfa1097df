import { clockSentence, slowedBy } from "../../clocks";
import * as format from "../../format";
import type { CompilePhase, Contestant, ContestantOutcome, Graph, Report } from "../../report";
import { wrongOf } from "../../wrong";
import { withinFactor } from "../figures";
import { Empty, Scroller } from "../Scroller";
import { Coded } from "../Coded";
import { WrongResults } from "../WrongResults";
import { ticksUpTo } from "./lanes";
import { type Column, Table } from "./Table";

const ROW = 48;
/** Of the width: what is right of the largest sample, for the last mark's name. */
const ROOM = 7;

/** Points of one contestant are spread a little in height, always the same way, so that equal samples stay apart. */
function spread(index: number): number {
  return ((index * 37) % 17) - 8;
}

/** Lengths along the axis are shares of the width, so that type keeps its size on any screen. */
function Strip({ contestants }: { contestants: Contestant[] }) {
  const largest = Math.max(...contestants.flatMap((one) => one.samples_ms), 1e-6) * 1.03;
  const along = (value: number): number => 1 + (value / largest) * (99 - ROOM);
  const x = (value: number): string => `${along(value)}%`;
  const height = contestants.length * ROW + 24;
  const summary = contestants.map((one) => `${format.contestant(one.name)}: median ${format.milliseconds(one.median_ms)}`).join("; ");
  return (
    <svg class="strip" width="100%" height={height} role="img" aria-label={`Every sample, from zero. ${summary}`}>
      {ticksUpTo(largest).map((tick) => (
        <g key={tick} class="tick">
          <line x1={x(tick)} x2={x(tick)} y1={2} y2={height - 18} />
          <text x={x(tick)} y={height - 5}>
            {tick === 0 ? "0" : format.milliseconds(tick)}
          </text>
        </g>
      ))}
      {contestants.map((one, index) => {
        const middle = index * ROW + ROW / 2 + 7;
        return (
          <g key={one.name} class={`contestant contestant-${one.name}`}>
            <text class="contestant-name" x="1%" dx={4} y={index * ROW + 12}>
              {format.contestant(one.name)}
            </text>
            <rect class="quartiles" x={x(one.low_ms)} width={`${Math.max(0.2, along(one.high_ms) - along(one.low_ms))}%`} y={middle - 13} height={26} />
            {one.samples_ms.map((sample, place) => (
              <circle key={place} cx={x(sample)} cy={middle + spread(place)} r={2.2} />
            ))}
            <line class="median" x1={x(one.median_ms)} x2={x(one.median_ms)} y1={middle - 15} y2={middle + 15} />
          </g>
        );
      })}
    </svg>
  );
}

/** `3.2× as fast as eager ± 4.1 %`, `takes 1.3× as long as eager ± 4.1 %`, `no measurable difference from eager ± 12 %`. */
export function besideEager(one: Contestant, eager: Contestant): string {
  if (one.differs_from_eager == null) return "";
  const within = withinFactor(one);
  if (!one.differs_from_eager) return `no measurable difference from eager${within}`;
  const [shorter, longer] = [one, eager].map(({ median_ms }) => median_ms).sort((a, b) => a - b);
  const ratio = format.ratio((longer ?? 1) / (shorter ?? 1), one.ratio_factor);
  return `${one.median_ms < eager.median_ms ? `${ratio} as fast as eager` : `takes ${ratio} as long as eager`}${within}`;
}

interface Row {
  name: string;
  timed: Contestant | undefined;
  outcome: ContestantOutcome | undefined;
}

function firstCall({ timed, outcome }: Row): number | null {
  return timed?.compile_s ?? outcome?.compile_s ?? null;
}

function duration(value: number | null | undefined): string {
  return value == null ? "" : format.milliseconds(value);
}

/** Every way to run the calls in one table; who has no time says why. */
function Contestants({ contestants, outcomes }: { contestants: Contestant[]; outcomes: readonly ContestantOutcome[] }) {
  const eager = contestants.find((one) => one.name === "eager");
  const names = new Set([...contestants, ...outcomes].map((one) => one.name));
  const rows: Row[] = [...names].map((name) => ({ name, timed: contestants.find((one) => one.name === name), outcome: outcomes.find((one) => one.name === name) }));
  return (
    <Table
      id="timing"
      label="Medians and quartiles, measured"
      rows={rows}
      keyOf={(one) => one.name}
      isCompact
      columns={[
        { id: "name", head: "a call, measured", cell: (one) => format.contestant(one.name) },
        { id: "median", head: "median", isNumber: true, by: (one) => one.timed?.median_ms ?? null, cell: (one) => <strong>{duration(one.timed?.median_ms)}</strong> },
        { id: "quartiles", head: "25 – 75 %", isNumber: true, isExtra: true, cell: ({ timed }) => timed && `${format.milliseconds(timed.low_ms)} – ${format.milliseconds(timed.high_ms)}` },
        { id: "samples", head: "samples", isNumber: true, isExtra: true, by: (one) => one.timed?.samples_ms.length ?? null, cell: (one) => one.timed?.samples_ms.length },
        { id: "compile", head: "first call", hint: "Seconds of its first call, compiling included", isNumber: true, isExtra: true, by: firstCall, cell: (one) => firstCall(one) !== null && `${firstCall(one)?.toFixed(1)} s` },
        ...(outcomes.length > 0
          ? [{ id: "error", head: "error", hint: "Largest relative error against float64", isNumber: true, by: (one: Row) => one.outcome?.max_error ?? null, cell: (one: Row) => one.outcome?.max_error?.toExponential(1) }]
          : []),
        { id: "beside", head: "beside eager", cell: ({ timed, outcome }) => (timed ? eager && timed !== eager && besideEager(timed, eager) : outcome?.failure && <Coded text={outcome.failure} />) },
      ]}
    />
  );
}

const PHASES = {
  capture: "Dynamo and AOTAutograd",
  lowering: "The graph becomes loops and library calls",
  scheduling: "Fusion, order and memory",
  "code generation": "The text of the kernels and of the wrapper",
  build: "g++ or Triton; earlier builds are loaded from the disk",
} satisfies Record<CompilePhase["phase"], string>;

function seconds(value: number | null): string {
  return value === null ? "" : format.milliseconds(1000 * value);
}

/** Where the time of compiling went, ours beside the peer's. */
function Phases({ phases, peer }: { phases: readonly CompilePhase[]; peer: string | undefined }) {
  if (phases.length === 0) return null;
  const columns: Column<CompilePhase>[] = [
    { id: "phase", head: "compiling", cell: (one) => <span title={PHASES[one.phase]}>{one.phase}</span> },
    { id: "compiled", head: "ours", isNumber: true, by: (one) => one.compiled_seconds, cell: (one) => seconds(one.compiled_seconds) },
  ];
  if (phases.some((one) => one.peer_seconds !== null)) {
    columns.push({ id: "peer", head: peer ?? "peer", hint: "By torch's own counters", isNumber: true, by: (one) => one.peer_seconds, cell: (one) => seconds(one.peer_seconds) });
  }
  return <Table id="phases" label="Seconds of compiling by phase, measured" rows={phases} keyOf={(one) => one.phase} isCompact columns={columns} />;
}

/** Graphs whose kernels' times do not add up to their call's. */
function Disturbed({ graphs }: { graphs: readonly Graph[] }) {
  const told = graphs.filter((graph) => graph.disturbed);
  return (
    <>
      {told.map((graph) => (
        <p class="note disturbed" key={graph.name}>
          <span class="chip chip-warn">disturbed</span> {`The kernels of ${graph.name} were disturbed while they were timed: their times are not reliable. ${graph.disturbed}`}
        </p>
      ))}
    </>
  );
}

/** The GPU's clocks, and what slowed them. */
function Clocks({ report }: { report: Report }) {
  const slowed = slowedBy(report);
  const clocks = clockSentence(report);
  if (!clocks) return null;
  return (
    <p class="note">
      {slowed && <span class="chip chip-warn">slowed GPU</span>}
      {slowed ? ` The GPU was slowed while it was timed (${slowed}): its times are too long. ${clocks}` : `Nothing slowed the GPU while it was timed. ${clocks}`}
    </p>
  );
}

function whereOf(report: Report): string {
  const { timing, environment } = report;
  if (!timing) return "";
  const name = environment.device_name || timing.device;
  const cache = timing.device === "cpu" ? "" : timing.cold_l2 ? ", with a cold L2 cache" : ", with a warm L2 cache";
  return `Measured on ${name}${cache}.`;
}

/** Every sample of each way to run the same calls, on one device; whether one is faster goes by its ratio to eager and how far that may be off. */
export function Timing({ report }: { report: Report }) {
  const { timing } = report;
  const wrong = [...wrongOf(report, "compiled"), ...wrongOf(report, "peer")];
  const outcomes = report.peer?.contestants ?? [];
  if (!timing || (timing.contestants.length === 0 && outcomes.length === 0)) {
    return wrong.length > 0 ? <WrongResults wrong={wrong} /> : <Empty>No times were taken.</Empty>;
  }
  return (
    <Scroller label="Samples and medians" class="timing">
      <div class="timing-plot">
        <WrongResults wrong={wrong} />
        <Strip contestants={timing.contestants} />
      </div>
      <div class="timing-text">
        <Contestants contestants={timing.contestants} outcomes={outcomes} />
        <Clocks report={report} />
        <Disturbed graphs={report.graphs} />
        <Phases phases={report.compile_phases} peer={report.peer?.name} />
        <p class="method">{`${whereOf(report)} ${timing.method}`}</p>
      </div>
    </Scroller>
  );
}

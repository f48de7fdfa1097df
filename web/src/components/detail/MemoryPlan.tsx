import { useState } from "preact/hooks";
import * as format from "../../format";
import { type Piece, type Plan, planOf } from "../../pieces";
import type { Buffer, Graph, Memory } from "../../report";
import { BufferTable } from "./BufferTable";
import { Facts } from "../Facts";
import { Empty, Scroller } from "../Scroller";
import { refs } from "../../state";

const ROW = 21;
const LIVE = 46;
const HEAD = 18;
const LEFT = 8;
const CHART_WIDTH = 760;
const NARROWEST = 22;
const WIDEST = 120;
const CHARACTER = 6.6;
const PIECES_AT_FIRST = 40;
const NAMES_AT_MOST = 24;

type Way = "fused" | "unfused";

function shortened(text: string, width: number): string {
  const room = Math.floor((width - 8) / CHARACTER);
  if (text.length <= room) return text;
  return room < 3 ? "" : `${text.slice(0, room - 1)}…`;
}

/** Bytes alive while each launch runs, over the pieces of memory that they are in. */
function Chart({ plan, pieces, way }: { plan: Plan; pieces: Piece[]; way: Way }) {
  const count = Math.max(plan.launches.length, 1);
  const column = Math.min(WIDEST, Math.max(NARROWEST, CHART_WIDTH / count));
  const x = (launch: number): number => LEFT + launch * column;
  const top = LIVE + HEAD;
  const height = top + pieces.length * ROW + 4;
  const summary = `${format.count(plan.launches.length, way === "fused" ? "kernel" : "node")}, ${format.count(plan.pieces.length, "piece")} of memory, at most ${format.bytes(plan.peak)} alive`;
  return (
    <svg class="plan" width={x(count) + LEFT} height={height} role="img" aria-label={`${way === "fused" ? "Memory of our kernels" : "Memory without fusion"}: ${summary}; the table below has the same`}>
      {plan.launches.map((launch, place) => {
        const live = plan.live[place] ?? 0;
        const tall = plan.peak > 0 ? (live / plan.peak) * (LIVE - 14) : 0;
        return (
          <g key={place} class={`plan-launch ${live === plan.peak ? "plan-peak" : ""}`} data-ref={launch.kernel === null ? refs.value.loop(launch.label) : refs.value.kernel(launch.kernel)}>
            <title>{`${launch.title}: ${format.bytes(live)} alive`}</title>
            <rect class="plan-live" x={x(place) + 1} y={LIVE - tall} width={column - 2} height={tall} />
            <line x1={x(place)} x2={x(place)} y1={0} y2={height} />
            <text x={x(place) + column / 2} y={LIVE + 13}>
              {launch.label.length * CHARACTER + 8 <= column ? launch.label : place + 1}
            </text>
          </g>
        );
      })}
      <text class="plan-most" x={x(Math.max(0, plan.live.slice(0, count).indexOf(plan.peak))) + 3} y={10}>
        {format.bytes(plan.peak)}
      </text>
      {pieces.map((piece, row) => (
        <g key={row}>
          {piece.tenants.map(({ buffer, from, to }) => (
            <Bar key={buffer.name} buffer={buffer} x={x(from) + 1} y={top + row * ROW} width={Math.max(4, (to - from) * column - 2)} />
          ))}
        </g>
      ))}
    </svg>
  );
}

function Bar({ buffer, x, y, width }: { buffer: Buffer; x: number; y: number; width: number }) {
  const over = buffer.note ? `, ${buffer.note}` : "";
  return (
    <g class={`plan-bar fate-${buffer.fate}`} data-ref={refs.value.buffer(buffer.name)}>
      <title>{`${buffer.name}, ${format.bytes(buffer.bytes)}${over}`}</title>
      <rect x={x} y={y + 2} width={width} height={ROW - 4} rx={4} />
      <text x={x + 5} y={y + ROW / 2 + 4}>
        {shortened(buffer.name, width)}
      </text>
    </g>
  );
}

function Names({ buffers }: { buffers: Buffer[] }) {
  return (
    <>
      {buffers.slice(0, NAMES_AT_MOST).map((buffer) => (
        <span class="share" key={buffer.name} data-ref={refs.value.buffer(buffer.name)}>
          <code>{buffer.name}</code> <span class="quiet">{format.bytes(buffer.bytes)}</span>
        </span>
      ))}
      {buffers.length > NAMES_AT_MOST && <span class="quiet">{`and ${buffers.length - NAMES_AT_MOST} more`}</span>}
    </>
  );
}

function Sums({ memory, way }: { memory: Memory; way: Way }) {
  const facts: [string, string][] =
    way === "fused"
      ? [
          ["alive at most", format.bytes(memory.peak_bytes)],
          ["in the order as written", format.bytes(memory.unordered_peak_bytes)],
          ["each buffer in memory of its own", format.bytes(memory.without_reuse_bytes)],
        ]
      : [
          ["alive at most", format.bytes(memory.unfused_peak_bytes)],
          ["each buffer in memory of its own", format.bytes(memory.unfused_without_reuse_bytes)],
        ];
  return (
    <Facts facts={facts}>
      <div>
        <dt>inputs are the caller's and do not count</dt>
      </div>
    </Facts>
  );
}

/** `mul over cos, in place`: what a compiler does with memory that is needed no more. */
function Reuses({ memory, way }: { memory: Memory; way: Way }) {
  const reuses = way === "fused" ? memory.reuses : memory.unfused_reuses;
  if (reuses.length === 0) return <p class="note">{way === "fused" ? "No buffer reuses the memory of another." : "Without fusion too, no buffer could reuse the memory of another."}</p>;
  return (
    <p class="note">
      {"Reused memory: "}
      {reuses.slice(0, NAMES_AT_MOST).map((one) => (
        <span class="share" key={one.buffer} data-ref={refs.value.buffer(one.buffer)}>
          <code>{one.buffer}</code> over <code>{one.takes_over}</code>
          {one.in_place && <span class="quiet"> in place</span>}
        </span>
      ))}
      {reuses.length > NAMES_AT_MOST && <span class="quiet">{`and ${reuses.length - NAMES_AT_MOST} more`}</span>}
    </p>
  );
}

/** Order, lifetimes, reuse, and what fusion keeps out of memory; beside it what a compiler without fusion would do. */
export function MemoryPlan({ graph }: { graph: Graph }) {
  const [way, setWay] = useState<Way>("fused");
  const [limit, setLimit] = useState(PIECES_AT_FIRST);
  const plan = planOf(graph, way);
  if (graph.buffers.length === 0) return <Empty>No buffers are planned yet.</Empty>;
  if (!graph.memory || !plan) return <Scroller label="Buffers"><BufferTable buffers={graph.buffers} launches={graph.kernels.length} way="fused" /></Scroller>;
  const kept = way === "fused" ? graph.buffers.filter((buffer) => buffer.fate === "register") : [];
  const bytes = kept.reduce((sum, buffer) => sum + buffer.bytes, 0);
  return (
    <div class="memory-plan">
      <div class="filters">
        <div class="toggle" role="group" aria-label="Plan of memory">
          {(["fused", "unfused"] as const).map((name) => (
            <button type="button" key={name} aria-pressed={way === name} onClick={() => setWay(name)}>
              {name === "fused" ? "our kernels" : "without fusion"}
            </button>
          ))}
        </div>
        <Sums memory={graph.memory} way={way} />
      </div>
      <Scroller label="Plan of buffers">
        {kept.length > 0 && (
          <p class="note">
            {`${format.bytes(bytes)} never reach memory: `}
            <Names buffers={kept} />
          </p>
        )}
        <Reuses memory={graph.memory} way={way} />
        {plan.pieces.length > 0 && plan.launches.length > 0 && (
          <div class="plan-scroll">
            <Chart plan={plan} pieces={plan.pieces.slice(0, limit)} way={way} />
          </div>
        )}
        {plan.pieces.length > limit && (
          <button type="button" class="show-all" onClick={() => setLimit(Number.POSITIVE_INFINITY)}>
            {`Show all ${plan.pieces.length} pieces of memory`}
          </button>
        )}
        <BufferTable buffers={way === "fused" ? graph.buffers : graph.memory.unfused_buffers} launches={plan.launches.length} way={way} />
      </Scroller>
    </div>
  );
}

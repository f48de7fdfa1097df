import * as format from "../../format";
import { type Ref } from "../../links";
import { fxNodeOf, readsOf, type Share, writesOf } from "../../moved";
import type { ExecutionTraffic, Graph, LaunchTraffic, Report, Summary, Traffic as Counted } from "../../report";
import { Name } from "../Name";
import { EdgeTable } from "./EdgeTable";
import { KernelTag } from "../KernelTag";
import { Empty, Scroller } from "../Scroller";
import { refs } from "../../state";
import { inAddress, oneOf } from "../../view";
import { type Column, Table } from "./Table";

type Way = "eager" | "unfused" | "fused" | "floor";
type Shown = Way | "edges";

/** Whose terms the table has. */
const wayShown = inAddress<Shown>("moved", "fused", oneOf("eager", "unfused", "fused", "floor", "edges"));

interface Bar {
  way: Way;
  label: string;
  bytes: number;
  launches: string;
}

function barsOf(traffic: Counted): Bar[] {
  const bar = (way: "eager" | "unfused" | "fused", label: string, noun: string): Bar[] => {
    const execution = traffic[way];
    return execution ? [{ way, label, bytes: execution.bytes, launches: format.count(execution.launches.length, noun) }] : [];
  };
  const least: Bar[] = traffic.floor_bytes === null ? [] : [{ way: "floor", label: "at least", bytes: traffic.floor_bytes, launches: "the floor" }];
  return [...bar("eager", "eager", "call"), ...bar("unfused", "without fusion", "kernel"), ...bar("fused", "with fusion", "kernel"), ...least];
}

/** Every bar begins at zero and has the same scale: their lengths are the bytes. */
function Bars({ bars, shown, onShow }: { bars: Bar[]; shown: Shown; onShow(way: Way): void }) {
  const most = Math.max(...bars.map((bar) => bar.bytes), 1);
  return (
    <div class="traffic-bars" role="group" aria-label="Bytes moved, counted from shapes">
      {bars.map((bar) => (
        <button type="button" key={bar.way} class={`traffic-bar traffic-${bar.way}`} aria-pressed={shown === bar.way} onClick={() => onShow(bar.way)}>
          <span class="traffic-name">{bar.label}</span>
          <span class="traffic-track" aria-hidden="true">
            <span style={{ width: `${(100 * bar.bytes) / most}%` }} />
          </span>
          <strong class="traffic-bytes">{format.bytes(bar.bytes)}</strong>
          <span class="quiet">{bar.launches}</span>
        </button>
      ))}
    </div>
  );
}

function Shares({ shares, toRef }: { shares: Share[]; toRef(tensor: string): Ref }) {
  return (
    <>
      {shares.map(({ tensor, bytes }, place) => (
        <span class="share" key={place} data-ref={toRef(tensor)}>
          <code>
            <Name text={tensor} />
          </code>{" "}
          <span class="quiet">{format.bytes(bytes)}</span>
        </span>
      ))}
    </>
  );
}

function refOf(way: Way, launch: LaunchTraffic, place: number): Ref | undefined {
  if (way === "fused") return refs.value.kernel(place);
  if (way === "eager") return launch.node === null ? undefined : refs.value.fx(launch.node);
  return refs.value.loop(launch.name);
}

/** A launch with its place: two launches may have one name. */
interface Placed {
  launch: LaunchTraffic;
  place: number;
}

const CALLED: Record<"eager" | "unfused" | "fused", string> = { eager: "call", unfused: "loop or library call", fused: "kernel" };

function columnsOf(way: "eager" | "unfused" | "fused"): Column<Placed>[] {
  const toRef = (tensor: string): Ref => (way === "eager" ? refs.value.fx(fxNodeOf(tensor)) : refs.value.buffer(tensor));
  const sum = (shares: Share[]): number => shares.reduce((total, share) => total + share.bytes, 0);
  return [
    {
      id: "name",
      head: CALLED[way],
      by: ({ launch, place }) => (way === "fused" ? place : launch.name),
      cell: ({ launch, place }) => (
        <span class="nowrap">
          {way === "fused" && <KernelTag place={place} />}
          <Name text={launch.name} />
        </span>
      ),
    },
    {
      id: "bytes",
      head: "bytes",
      isNumber: true,
      by: ({ launch }) => launch.bytes,
      cell: ({ launch }) => (
        <span title={launch.unseen}>
          {launch.unseen && <span class="quiet">at least </span>}
          {format.bytes(launch.bytes)}
        </span>
      ),
    },
    { id: "reads", head: "reads", class: "wide", by: ({ launch }) => sum(readsOf(launch.tensors)), cell: ({ launch }) => <Shares shares={readsOf(launch.tensors)} toRef={toRef} /> },
    { id: "writes", head: "writes", class: "wide", by: ({ launch }) => sum(writesOf(launch.tensors)), cell: ({ launch }) => <Shares shares={writesOf(launch.tensors)} toRef={toRef} /> },
    { id: "line", head: "line", isNumber: true, isExtra: true, by: ({ launch }) => launch.lines[0] ?? null, cell: ({ launch }) => launch.lines.join(", ") },
  ];
}

function Launches({ way, execution }: { way: "eager" | "unfused" | "fused"; execution: ExecutionTraffic }) {
  const unseen = [...new Set(execution.launches.map((launch) => launch.unseen))].filter(Boolean);
  const columns = columnsOf(way);
  return (
    <>
      <Table
        id="launches"
        label="What each launch moves"
        rows={execution.launches.map((launch, place) => ({ launch, place }))}
        keyOf={({ place }) => place}
        refOf={({ launch, place }) => refOf(way, launch, place)}
        columns={columns}
        groups={[{ id: "line", label: "line", of: ({ launch }) => (launch.lines.length > 0 ? `line ${launch.lines.join(", ")}` : "no line") }]}
        foot={
          <tr>
            <th scope="row">{execution.launches.length === 1 ? "one launch" : `${execution.launches.length} launches`}</th>
            <td class="number">
              {execution.library_bytes > 0 && <span class="quiet">at least </span>}
              <strong>{format.bytes(execution.bytes)}</strong>
            </td>
          </tr>
        }
      />
      {unseen.map((sentence) => (
        <p key={sentence} class="note quiet">
          {sentence}
        </p>
      ))}
    </>
  );
}

/** An input that is read, or a result that is written; one that is both has two rows. */
function Floor({ traffic }: { traffic: Counted }) {
  return (
    <>
      <p class="note quiet">What any compiler must move: the used part of each input read once, each result written once.</p>
      <Table
        id="floor"
        label="What any compiler must move"
        rows={traffic.floor}
        isCompact
        keyOf={(one) => `${one.tensor} ${one.written_bytes > 0}`}
        refOf={(one) => refs.value.buffer(one.tensor)}
        columns={[
          { id: "tensor", head: "tensor", by: (one) => one.tensor, cell: (one) => <Name text={one.tensor} /> },
          { id: "read", head: "read", isNumber: true, by: (one) => one.read_bytes, cell: (one) => one.read_bytes > 0 && format.bytes(one.read_bytes) },
          { id: "written", head: "written", isNumber: true, by: (one) => one.written_bytes, cell: (one) => one.written_bytes > 0 && format.bytes(one.written_bytes) },
        ]}
      />
    </>
  );
}

/** The way from one figure to the next, so that a reader can follow the sum. */
function Saved({ traffic }: { traffic: Counted }) {
  const { unfused, fused } = traffic;
  if (!unfused || !fused || unfused.bytes === fused.bytes) return null;
  const [all, written, read, again, left] = format.bytesInSum([unfused.bytes, traffic.saved_written_bytes, traffic.saved_read_bytes, traffic.more_read_bytes, fused.bytes]);
  return (
    <p class="traffic-sum">
      {`${all} − ${written} not written − ${read} not read`}
      {traffic.more_read_bytes > 0 && ` + ${again} read to compute values again`}
      {" = "}
      <strong>{left}</strong>
    </p>
  );
}

function Together({ summary, graphs }: { summary: Summary; graphs: number }) {
  const figures: [string, number | null][] = [["eager", summary.eager_bytes], ["without fusion", summary.unfused_bytes], ["with fusion", summary.bytes], ["at least", summary.floor_bytes]];
  const known = figures.flatMap(([name, value]) => (value === null ? [] : [`${name} ${format.bytes(value)}`]));
  return known.length > 0 ? <p>{`${graphs === 2 ? "Both" : `All ${graphs}`} graphs together: ${known.join(", ")}.`}</p> : null;
}

/** Bytes that the graph moves: each figure is a sum, and the table beside it has its terms. */
export function Traffic({ graph, report }: { graph: Graph; report: Report }) {
  const wanted = wayShown.value;
  const { traffic } = graph;
  if (!traffic) return <Empty>Nothing was counted.</Empty>;
  const bars = barsOf(traffic);
  const shown = wanted === "edges" || bars.some((bar) => bar.way === wanted) ? wanted : (bars[0]?.way ?? "edges");
  const execution = shown === "edges" || shown === "floor" ? null : traffic[shown];
  return (
    <div class="traffic">
      <div class="traffic-side">
        <Bars bars={bars} shown={shown} onShow={(way) => (wayShown.value = way)} />
        <Saved traffic={traffic} />
        {traffic.edges.length > 0 && (
          <button type="button" aria-pressed={shown === "edges"} class="traffic-edges" onClick={() => (wayShown.value = "edges")}>
            {`each of ${format.count(traffic.edges.length, "edge")}: what it would cost in memory`}
          </button>
        )}
        {report.graphs.length > 1 && <Together summary={report.summary} graphs={report.graphs.length} />}
        <p class="quiet">Counted from shapes, not measured. A click on a figure shows its terms.</p>
      </div>
      <Scroller label="What moves">
        {shown === "edges" ? (
          <EdgeTable edges={traffic.edges} />
        ) : shown === "floor" ? (
          <Floor traffic={traffic} />
        ) : (
          execution && <Launches key={shown} way={shown} execution={execution} />
        )}
      </Scroller>
    </div>
  );
}

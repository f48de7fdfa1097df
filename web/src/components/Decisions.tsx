import { useMemo, useState } from "preact/hooks";
import * as format from "../format";
import type { Decision, Graph } from "../report";
import { sharedBuffer, stakeOf, togetherIn } from "../stake";
import { pinned, predictedFor, reasons, refs, round } from "../state";
import { AskWhy } from "./AskWhy";
import { shortList } from "./CodeView";
import { DecisionNumbers } from "./DecisionNumbers";
import { KernelTag } from "./KernelTag";
import { Layouts } from "./Layouts";
import { Paddings } from "./Paddings";
import { Removed } from "./Removed";
import { Empty, Scroller } from "./Scroller";

/** A long table is slow to draw, and nobody reads it to the end. */
const ROWS_AT_FIRST = 200;

type Verdict = "all" | Decision["verdict"];

interface Numbered {
  decision: Decision;
  index: number;
  /** Rounds in which the same pair got the same answer: one row is enough for all. */
  rounds: number[];
}

function withoutRepeats(decisions: Decision[]): Numbered[] {
  const found = new Map<string, Numbered>();
  decisions.forEach((decision, index) => {
    const key = JSON.stringify([decision.a, decision.b, decision.verdict, decision.reason]);
    const known = found.get(key);
    if (known) known.rounds.push(decision.round);
    else found.set(key, { decision, index, rounds: [decision.round] });
  });
  return [...found.values()];
}

function matches(decision: Decision, wanted: string): boolean {
  const text = `${decision.a} ${decision.b} ${decision.kind} ${decision.reason} ${decision.message}`.toLowerCase();
  return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The part of a reason's id before the dot: index, shape, profit, ... */
function familyOf(decision: Decision): string {
  return decision.reason.split(".")[0] ?? "";
}

function rankOf(decision: Decision, graph: Graph): number {
  if (decision.verdict === "fused") return 2;
  return togetherIn(decision, graph).length > 0 ? 1 : 0;
}

/** Refusals that lasted come first, and of them those with most at stake; equal stakes keep the scheduler's order. */
function sorted(graph: Graph, refusalsFirst: boolean): Numbered[] {
  const all = withoutRepeats(graph.decisions);
  if (!refusalsFirst) return all;
  const ranked = all.map((row) => ({ row, rank: rankOf(row.decision, graph), stake: stakeOf(row.decision) }));
  ranked.sort((one, other) => one.rank - other.rank || other.stake - one.stake || one.row.index - other.row.index);
  return ranked.map(({ row }) => row);
}

function Row({ decision, index, rounds, graph }: Numbered & { graph: Graph }) {
  const { score } = decision;
  // Without a kernel of both there is no prediction of it.
  const isLegal = score?.fused_us != null;
  const self = refs.value.decision(index);
  const shared = sharedBuffer(decision, graph);
  const together = decision.verdict === "refused" ? togetherIn(decision, graph) : [];
  return (
    <tr data-ref={self} tabIndex={0} class={decision.verdict}>
      <th scope="row">{decision.a}</th>
      <td>{decision.b}</td>
      <td class="number">{shortList(rounds)}</td>
      <td>{decision.kind}</td>
      <td>
        <span class={`verdict-chip ${decision.verdict}`}>{decision.verdict}</span>
        {together.length > 0 && (
          <span class="quiet" title="What stood between them joined in a later round">
            {" later together "}
            {together.map((place) => (
              <KernelTag key={place} place={place} />
            ))}
          </span>
        )}
      </td>
      <td title={reasons.value.get(decision.reason)?.sentence}>
        <a href={`/api/v1/reasons/${encodeURIComponent(decision.reason)}`} target="_blank" rel="noreferrer" tabIndex={-1}>
          <code>{decision.reason}</code>
        </a>
      </td>
      <td class="message">
        {decision.message}
        {pinned.value === self && <DecisionNumbers decision={decision} />}
      </td>
      <td class="nowrap">
        {shared && (
          <>
            <code>{shared.name}</code> <span class="quiet">{format.bytes(shared.bytes)}</span>
          </>
        )}
      </td>
      <td class="number" title={isLegal ? undefined : "at most, if the two could be one kernel"}>
        {isLegal || !score?.bytes_saved ? format.bytes(score?.bytes_saved) : `≤ ${format.bytes(score.bytes_saved)}`}
      </td>
      <td class="number predicted">{format.microseconds(score?.fused_us)}</td>
      <td class="number predicted">{format.microseconds(score?.unfused_us)}</td>
      <td class="number">{decision.lines.join(", ")}</td>
    </tr>
  );
}

export function Decisions({ graph }: { graph: Graph }) {
  const [verdict, setVerdict] = useState<Verdict>("all");
  const [refusalsFirst, setRefusalsFirst] = useState(true);
  const [wanted, setWanted] = useState("");
  const [family, setFamily] = useState("");
  const onlyRound = round.value;
  const [limit, setLimit] = useState(ROWS_AT_FIRST);
  const families = useMemo(() => [...new Set(graph.decisions.map(familyOf))].sort(), [graph]);
  const rows = useMemo(() => sorted(graph, refusalsFirst), [graph, refusalsFirst]);
  const shown = rows.filter(
    ({ decision, rounds }) =>
      (verdict === "all" || decision.verdict === verdict) &&
      (family === "" || familyOf(decision) === family) &&
      (onlyRound === null || rounds.includes(onlyRound)) &&
      matches(decision, wanted),
  );
  const countOf = (which: Decision["verdict"]): number => graph.decisions.filter((decision) => decision.verdict === which).length;
  if (graph.decisions.length === 0) {
    return (
      <div class="decisions">
        <Layouts graph={graph} />
        <Paddings graph={graph} />
        <Empty>The scheduler had no pair of nodes to look at.</Empty>
      </div>
    );
  }
  return (
    <div class="decisions">
      <div class="filters">
        <div class="toggle" role="group" aria-label="Verdict">
          {(["all", "fused", "refused"] as const).map((which) => (
            <button type="button" key={which} aria-pressed={verdict === which} onClick={() => setVerdict(which)}>
              {which === "all" ? `all ${graph.decisions.length}` : `${which} ${countOf(which)}`}
            </button>
          ))}
        </div>
        <label class="check">
          reasons
          <select value={family} onChange={(event) => setFamily(event.currentTarget.value)}>
            <option value="">of every family</option>
            {families.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="check">
          <input type="checkbox" checked={refusalsFirst} onChange={(event) => setRefusalsFirst(event.currentTarget.checked)} />
          refusals first, by bytes at stake
        </label>
        <span class="quiet">{`a click on a row shows its numbers; predictions are for ${predictedFor.value}`}</span>
        <input type="search" aria-label="Filter decisions" placeholder="filter: node, reason, words" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      </div>
      <AskWhy graph={graph} />
      <Scroller label="Fusion decisions">
        <Layouts graph={graph} />
        <Paddings graph={graph} />
        <Removed graph={graph} />
        {graph.more_decisions.length > 0 && <p class="quiet">{`${graph.more_decisions.length} more pairs are not told at length; ask why about any of them.`}</p>}
        <table>
          <thead>
            <tr>
              <th scope="col">a</th>
              <th scope="col">b</th>
              <th scope="col" class="number">round</th>
              <th scope="col">kind</th>
              <th scope="col">verdict</th>
              <th scope="col">reason</th>
              <th scope="col">because</th>
              <th scope="col">shares</th>
              <th scope="col" class="number">bytes saved</th>
              <th scope="col" class="number" title={`by the cost model, for ${predictedFor.value}`}>predicted fused</th>
              <th scope="col" class="number" title={`by the cost model, for ${predictedFor.value}`}>predicted apart</th>
              <th scope="col" class="number">line</th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, limit).map((row) => (
              <Row key={row.index} graph={graph} {...row} />
            ))}
          </tbody>
        </table>
        {shown.length > limit && (
          <button type="button" class="show-all" onClick={() => setLimit(Number.POSITIVE_INFINITY)}>
            {`Show all ${shown.length}`}
          </button>
        )}
        {shown.length === 0 && <Empty>No decision matches.</Empty>}
      </Scroller>
    </div>
  );
}

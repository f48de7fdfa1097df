import * as format from "../../format";
import type { Graph } from "../../report";
import { lastRound, unitsAfter } from "../../rounds";
import { round, shownGraph } from "../../state";

const MERGES_TOLD = 2;

/** What a round did, in a sentence. */
export function sentenceOf(graph: Graph, number: number): string {
  if (number === 0) return `Before the first round each of ${format.count(graph.loops.filter((loop) => !loop.dead).length, "loop node")} is alone.`;
  const step = graph.rounds.find((one) => one.number === number);
  if (!step) return "";
  const before = new Map(unitsAfter(graph, number - 1).map((unit) => [unit.join(), unit]));
  const made = unitsAfter(graph, number).filter((unit) => !before.has(unit.join()));
  const merges = made.map((unit) => (unit.length <= 4 ? unit.join(" + ") : `${unit.slice(0, 3).join(" + ")} and ${unit.length - 3} more`));
  const joined = merges.length === 0 ? "Nothing joined" : `Joined: ${merges.slice(0, MERGES_TOLD).join("; ")}${merges.length > MERGES_TOLD ? `; ${merges.length - MERGES_TOLD} more` : ""}`;
  const refused = step.refused > 0 ? ` ${format.count(step.refused, "pair")} ${step.refused === 1 ? "was" : "were"} refused.` : "";
  return `${joined}.${refused} ${format.count(step.units, "unit")} left.`;
}

/** The scheduler's rounds one by one: `j` and `k`, or the slider. */
export function RoundBar() {
  const graph = shownGraph.value;
  const last = graph ? lastRound(graph) : 0;
  if (!graph || last === 0) return null;
  const now = round.value === null ? null : Math.min(round.value, last);
  return (
    <div class="round-bar">
      <label>
        <span title="j: next round, k: previous round">{now === null ? `Rounds: ${last}` : `Round ${now} of ${last}`}</span>
        <input
          type="range"
          min={0}
          max={last}
          value={now ?? last}
          aria-label="Round"
          aria-valuetext={now === null ? "after all rounds" : `after round ${now}`}
          onInput={(event) => (round.value = Number(event.currentTarget.value))}
        />
      </label>
      {now === null ? (
        <span class="quiet">Step through the rounds of fusion.</span>
      ) : (
        <>
          <span class="round-sentence" role="status">
            {sentenceOf(graph, now)}
          </span>
          <button type="button" onClick={() => (round.value = null)}>
            all rounds
          </button>
        </>
      )}
    </div>
  );
}

/** One round on or back. From all rounds that is to the beginning, or to the last one; past the last one all are shown. */
export function stepRound(by: 1 | -1): void {
  const graph = shownGraph.value;
  const last = graph ? lastRound(graph) : 0;
  if (last === 0) return;
  const next = round.value === null ? (by > 0 ? 0 : last) : round.value + by;
  round.value = next > last ? null : Math.max(0, next);
}

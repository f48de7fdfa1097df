import type { Graph } from "../report";
import { lastRound, unitsAfter } from "../rounds";

/** More would push the decisions off the screen; the kernels' pane has the last ones all. */
const GROUPS_SHOWN = 12;
const NODES_SHOWN = 8;

/** The scheduler's rounds one by one: `round` is null while all of them are shown. */
export function Rounds({ graph, round, onRound }: { graph: Graph; round: number | null; onRound(round: number | null): void }) {
  const last = lastRound(graph);
  if (last === 0) return null;
  const units = round === null ? [] : unitsAfter(graph, round);
  const groups = units.filter((nodes) => nodes.length > 1);
  return (
    <>
      <label class="check">
        round
        <input
          type="range"
          min={0}
          max={last}
          value={round ?? last}
          aria-valuetext={round === null ? "all rounds" : `after round ${round}`}
          onInput={(event) => onRound(Number(event.currentTarget.value))}
        />
      </label>
      {round === null ? (
        <span class="quiet">{`${last} in all`}</span>
      ) : (
        <>
          <span class="groups" data-testid="groups">
            {round === 0 ? "before the first round: " : `after round ${round}: `}
            {groups.slice(0, GROUPS_SHOWN).map((nodes) => (
              <span class="group" key={nodes.join()} title={nodes.join(", ")}>
                {nodes.slice(0, NODES_SHOWN).join(" + ") + (nodes.length > NODES_SHOWN ? ` + ${nodes.length - NODES_SHOWN} more` : "")}
              </span>
            ))}
            {groups.length > GROUPS_SHOWN && `${groups.length - GROUPS_SHOWN} more groups, `}
            {`${units.length - groups.length} nodes alone`}
          </span>
          <button type="button" onClick={() => onRound(null)}>
            all rounds
          </button>
        </>
      )}
    </>
  );
}

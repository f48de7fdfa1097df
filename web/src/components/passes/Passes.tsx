import type { Graph } from "../../report";
import { inAddress, text } from "../../view";
import { Removed } from "../Removed";
import { Rewrites } from "../Rewrites";
import { Empty, Scroller } from "../Scroller";
import { TextDiff } from "../why/TextDiff";
import { type Pass, passesOf } from "./passes";

const chosen = inAddress<string | null>("pass", null, text);

const textOf = (lines: Pass["before"]): string => lines.map((line) => line.text).join("\n");

/** The graph before and after one of our passes: only what it changed. */
export function Passes({ graph }: { graph: Graph }) {
  const passes = passesOf(graph);
  const pass = passes.find((one) => one.id === chosen.value) ?? passes[0];
  if (!pass) return <Empty>No pass has both its sides yet.</Empty>;
  const { before, after } = pass;
  return (
    <div class="passes">
      <div class="filters">
        <div class="toggle" role="group" aria-label="Pass">
          {passes.map((one) => (
            <button type="button" key={one.id} aria-pressed={one === pass} onClick={() => (chosen.value = one.id)}>
              {one.label}
            </button>
          ))}
        </div>
        <p class="quiet">{pass.about}</p>
      </div>
      <Scroller label="What the pass changed">
        <TextDiff label={pass.label} before={textOf(before)} after={textOf(after)} refsBefore={before.map((line) => line.ref)} refsAfter={after.map((line) => line.ref)} />
        {pass.id === "operators" && <Rewrites rewrites={graph.rewrites} />}
        {pass.id === "loops" && <Removed graph={graph} />}
      </Scroller>
    </div>
  );
}

import { isRunning, report, shownGraph } from "../state";
import { ask, type Pair, withPair, wishesOf } from "../whatIf";

function isInput(name: string): boolean {
  return (shownGraph.value?.aten ?? []).some((node) => node.name === name && ["placeholder", "get_attr"].includes(node.op));
}

/** On two nodes: the other verdict, tried. A force that is not legal is refused with the reason. */
export function WhatIfButtons({ pair, verdict }: { pair: Pair; verdict: string }) {
  const shown = report.value;
  if (!shown?.id) return null;
  const option = verdict === "fused" ? "forbid" : "force";
  const input = pair.find(isInput);
  if (input !== undefined) return <span class="quiet">{`${input} is an input of the graph: no kernel computes it, so there is nothing to fuse.`}</span>;
  return (
    <button
      type="button"
      class="what-if-button"
      disabled={isRunning.value}
      title={`Explore again with ${pair.join(" and ")} ${option === "forbid" ? "kept apart" : "fused, if that is legal"}, and compare`}
      onClick={() => void ask(withPair(wishesOf(shown), option, pair))}
    >
      {option === "forbid" ? "Forbid this fusion" : "Force this fusion"}
    </button>
  );
}

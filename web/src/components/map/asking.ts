/** Asking why of two nodes of the map. */
import type { Refusal } from "../../graph/refusals";
import { graphNameOf, kindOf, nameIn, numberIn, type Ref } from "../../links";
import { pair, pinned, say } from "../../state";
import { frameOf } from "./places";

export function askAbout({ graph, a, b }: Pick<Refusal, "graph" | "a" | "b">): void {
  pair.value = { graph, a, b };
}

/** A node of the map as the question names it: an operation, or of a kernel its last loop node. */
function nameOf(item: Ref): string | null {
  const kernel = frameOf(graphNameOf(item))?.graph.kernels[kindOf(item) === "kernel" ? numberIn(item) : -1];
  if (kernel) return kernel.nodes.at(-1) ?? null;
  return kindOf(item) === "aten" || kindOf(item) === "loop" ? nameIn(item) : null;
}

/** The selected node and this one; says what is missing where that is no pair. */
export function askWithSelected(item: Ref): void {
  const selected = pinned.value;
  if (selected === null) {
    pinned.value = item;
    say("Selected. Shift and a click on another node asks why the two are, or are not, in one kernel.");
    return;
  }
  const [a, b] = [nameOf(selected), nameOf(item)];
  if (graphNameOf(selected) !== graphNameOf(item)) say("These two are in different graphs: nothing is fused across graphs.");
  else if (a === null || b === null || a === b) say("To ask why, select two different nodes of the aten graph.");
  else pair.value = { graph: graphNameOf(item) ?? "", a, b };
}

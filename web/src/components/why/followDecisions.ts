/** A decision that is selected, in whatever view, is a question about its two sides. */
import { effect } from "@preact/signals";
import { graphNameOf, kindOf, numberIn, type Ref } from "../../links";
import { pair, pinned, shownReport } from "../../state";

/** Tells once for each selection: whoever closes the card does not want it back. */
export function followDecisions(): void {
  let told: Ref | null = null;
  let asked = pair.peek();
  effect(() => {
    const item = pinned.value;
    const graphs = shownReport.value?.graphs ?? [];
    const isAskedAnew = pair.peek() !== asked && pair.peek() !== null;
    asked = pair.peek();
    if (item === null || kindOf(item) !== "decision") told = null;
    if (item === null || item === told || kindOf(item) !== "decision") return;
    const graph = graphs.find(({ name }) => name === graphNameOf(item));
    const decision = graph?.decisions[numberIn(item)];
    if (!graph || !decision) return;
    told = item;
    // A link may name both: what it asks about comes first.
    if (!isAskedAnew) pair.value = asked = { graph: graph.name, a: decision.a, b: decision.b };
  });
}

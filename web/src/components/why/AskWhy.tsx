import { useMemo, useState } from "preact/hooks";
import type { Graph } from "../../report";
import { pair } from "../../state";
import { isKnown } from "./answers";

function namesOf(graph: Graph): string[] {
  const kernels = graph.kernels.map((_, place) => `K${place + 1}`);
  const names = [...kernels, ...graph.loops.map((loop) => loop.name), ...graph.aten.filter((node) => node.op !== "output").map((node) => node.name)];
  return [...new Set(names)];
}

/** Two nodes chosen by name: the card answers. */
export function AskWhy({ graph }: { graph: Graph }) {
  const [a, setA] = useState("");
  const [b, setB] = useState("");
  const [unknown, setUnknown] = useState<string | null>(null);
  const names = useMemo(() => namesOf(graph), [graph]);
  const ask = (event: Event): void => {
    event.preventDefault();
    const wrong = [a, b].map((name) => name.trim()).find((name) => !isKnown(name, graph));
    setUnknown(wrong ?? null);
    if (wrong === undefined) pair.value = { graph: graph.name, a: a.trim(), b: b.trim() };
  };
  return (
    <form class="ask-why" onSubmit={ask}>
      <input type="text" list="node-names" aria-label="First node" placeholder="any node" value={a} onInput={(event) => setA(event.currentTarget.value)} required />
      <span>and</span>
      <input type="text" list="node-names" aria-label="Second node" placeholder="any other" value={b} onInput={(event) => setB(event.currentTarget.value)} required />
      <button type="submit">Ask why</button>
      {unknown !== null && <span class="bad" role="alert">{`This graph has no node “${unknown}”.`}</span>}
      <datalist id="node-names">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </form>
  );
}

import * as format from "../../format";
import type { Graph, LoopNode } from "../../report";
import { links, refs } from "../../state";
import { KernelTag } from "../KernelTag";
import { Empty, Scroller } from "../Scroller";

function Loop({ loop }: { loop: LoopNode }) {
  const kernels = links.value.numbersOf(refs.value.loop(loop.name), "kernel");
  const space = format.shape(loop.sizes);
  return (
    <article class={`loop ${loop.dead ? "dead" : ""}`} data-ref={refs.value.loop(loop.name)} tabIndex={0}>
      <header>
        <strong>{loop.name}</strong>
        <span class="chip">{loop.kind}</span>
        {loop.fallback && <span class="chip chip-warn" title="An ATen call that has no lowering here">fallback</span>}
        {loop.dead && <span class="chip chip-bad">dead</span>}
        <span class="quiet">
          {space}
          {loop.reduction_sizes.length > 0 && ` over ${format.shape(loop.reduction_sizes)}`} {format.dtype(loop.dtype)}
        </span>
        <span class="push">
          {kernels.map((place) => (
            <KernelTag key={place} place={place} />
          ))}
        </span>
      </header>
      <pre>{loop.body.join("\n")}</pre>
      {loop.origins.length > 0 && <footer class="quiet">{`from ${loop.origins.join(", ")}`}</footer>}
    </article>
  );
}

export function LoopList({ graph }: { graph: Graph }) {
  if (graph.loops.length === 0) return <Empty>No loops: the lowering has not run, or the graph has nothing to compute.</Empty>;
  return (
    <Scroller label="Loop nodes">
      {graph.loops.map((loop) => (
        <Loop key={loop.name} loop={loop} />
      ))}
    </Scroller>
  );
}

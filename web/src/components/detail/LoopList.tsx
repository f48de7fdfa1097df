import * as format from "../../format";
import type { Graph, LoopNode } from "../../report";
import { links, refs } from "../../state";
import { KernelTag } from "../KernelTag";
import { Empty, Scroller } from "../Scroller";
import { Name } from "../Name";
import { Table } from "./Table";

export function Loop({ loop }: { loop: LoopNode }) {
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

/** The first kernel that computes it. */
function kernelOf(loop: LoopNode): number | null {
  return links.value.numbersOf(refs.value.loop(loop.name), "kernel")[0] ?? null;
}

export function LoopList({ graph }: { graph: Graph }) {
  if (graph.loops.length === 0) return <Empty>No loops: the lowering has not run, or the graph has nothing to compute.</Empty>;
  return (
    <Scroller label="Loop nodes">
      <Table
        id="loops"
        label="Loop nodes"
        rows={graph.loops}
        keyOf={(loop) => loop.name}
        refOf={(loop) => refs.value.loop(loop.name)}
        classOf={(loop) => (loop.dead ? "dead" : "")}
        groups={[
          { id: "kernel", label: "kernel", of: (loop) => (kernelOf(loop) === null ? "" : `K${(kernelOf(loop) ?? 0) + 1}`) },
          { id: "kind", label: "kind", of: (loop) => loop.kind },
        ]}
        columns={[
          {
            id: "name",
            head: "loop",
            by: (loop) => loop.name,
            cell: (loop) => (
              <>
                <Name text={loop.name} /> {loop.fallback && <span class="chip chip-warn" title="An ATen call that has no lowering here">fallback</span>}
              </>
            ),
          },
          { id: "kernel", head: "kernel", by: kernelOf, cell: (loop) => (loop.dead ? "dead" : links.value.numbersOf(refs.value.loop(loop.name), "kernel").map((place) => <KernelTag key={place} place={place} />)) },
          { id: "kind", head: "kind", by: (loop) => loop.kind, cell: (loop) => (loop.kind === "extern" ? "library call" : loop.kind) },
          { id: "sizes", head: "loops", cell: (loop) => <span class="nowrap">{loop.sizes.length > 0 && format.shape(loop.sizes)}</span> },
          { id: "over", head: "reduces", isExtra: true, cell: (loop) => <span class="nowrap">{loop.reduction_sizes.length > 0 && format.shape(loop.reduction_sizes)}</span> },
          { id: "line", head: "line", isNumber: true, isExtra: true, by: (loop) => loop.lines[0] ?? null, cell: (loop) => loop.lines.join(", ") },
          { id: "body", head: "body", class: "wide", cell: (loop) => <pre class="body">{loop.body.join("\n")}</pre> },
        ]}
      />
    </Scroller>
  );
}

import * as format from "../format";
import { ref } from "../links";
import type { Graph, Kernel, Report } from "../report";
import { compilerShown, isRunning, kernelPicked, kernelShown, links, newestWith, predictedFor, refs, release, shownGraph } from "../state";
import { wrongOf } from "../wrong";
import { KernelCard } from "./KernelCard";
import { KernelTag } from "./KernelTag";
import { Empty } from "./Scroller";
import { WrongResults } from "./WrongResults";

/** Equal layers have equal kernels: the first of them says how many there are. */
function Repeats({ kernel, kernels }: { kernel: Kernel; kernels: Kernel[] }) {
  if (kernel.same_as) return <span class="chip quiet" title={`The same code as ${kernel.same_as}, but for names`}>same code</span>;
  const count = 1 + kernels.filter((other) => other.same_as === kernel.name).length;
  return count > 1 ? <span class="chip" title="Kernels of the same code, but for names">{`${count} times`}</span> : null;
}

/** The list tells the kernels apart by what they cost; a column that no kernel has a figure for is left out. */
export function KernelList({ kernels, selected, isPeer }: { kernels: Kernel[]; selected: number; isPeer: boolean }) {
  const has = (figure: keyof Kernel): boolean => kernels.some((kernel) => kernel[figure] !== null && kernel[figure] !== 0);
  return (
    <div class="kernel-list scroller" role="region" aria-label="Kernels in launch order" tabIndex={0} data-scroller>
      <table>
        <thead>
          <tr>
            <th scope="col">kernel</th>
            <th scope="col">kind</th>
            {has("bytes") && <th scope="col" class="number">bytes</th>}
            {has("predicted_us") && <th scope="col" class="number" title="by the cost model">{`predicted, ${predictedFor.value}`}</th>}
            {has("measured_us") && <th scope="col" class="number">measured</th>}
            {has("gb_per_s") && <th scope="col" class="number">GB/s</th>}
          </tr>
        </thead>
        <tbody>
          {kernels.map((kernel, place) => (
            <tr
              key={place}
              data-ref={isPeer ? ref.peer(place) : refs.value.kernel(place)}
              data-no-pin
              aria-selected={place === selected}
              onClick={() => (kernelPicked.value = place)}
            >
              <th scope="row">
                <button type="button" class="plain" aria-pressed={place === selected}>
                  {!isPeer && <KernelTag place={place} />}
                  <span>{kernel.name}</span>
                  <Repeats kernel={kernel} kernels={kernels} />
                </button>
              </th>
              <td>{kernel.kind}</td>
              {has("bytes") && <td class="number">{format.bytes(kernel.bytes)}</td>}
              {has("predicted_us") && <td class="number predicted">{format.microseconds(kernel.predicted_us)}</td>}
              {has("measured_us") && <td class="number">{format.microseconds(kernel.measured_us)}</td>}
              {has("gb_per_s") && <td class="number">{format.rate(kernel.gb_per_s)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The kernel that covers the same operations stays open, where the other compiler has one. */
function showCompiler(id: "ours" | "peer"): void {
  if (compilerShown.value === id) return;
  const [from, to] = id === "peer" ? ([refs.value.kernel, "peer"] as const) : ([ref.peer, "kernel"] as const);
  const [same] = links.value.numbersOf(from(kernelShown.value), to, to === "kernel" ? (shownGraph.value?.name ?? null) : null);
  compilerShown.value = id;
  kernelPicked.value = same ?? null;
}

function CompilerToggle({ shown }: { shown: Report }) {
  if (!shown.peer) return null;
  const names = [["ours", "Fusionscope"], ["peer", shown.peer.name]] as const;
  return (
    <div class="toggle" role="group" aria-label="Compiler">
      {names.map(([id, name]) => (
        <button type="button" key={id} aria-pressed={compilerShown.value === id} onClick={() => showCompiler(id)}>
          {name}
        </button>
      ))}
    </div>
  );
}

/** Kernel times that do not add up to their call's time are shown, but nobody is to rely on them. */
export function DisturbedTimes({ graph }: { graph: Graph | undefined }) {
  return graph?.disturbed ? <p class="note" role="note">{`Measured times are not to be relied on. ${graph.disturbed}`}</p> : null;
}

export function KernelsPane() {
  const shown = newestWith((graph) => graph.kernels.length > 0);
  const isPeer = compilerShown.value === "peer" && shown?.report.peer != null;
  const kernels = (isPeer ? shown?.report.peer?.kernels : shown?.graph.kernels) ?? [];
  const place = kernelShown.value;
  const selected = kernels[place];
  return (
    <section class="pane" id="pane-side" data-pane="side" aria-label="Kernel" tabIndex={-1}>
      <div class="pane-bar">
        <h2>Kernels</h2>
        {kernels.length > 0 && <span class="badge">{kernels.length}</span>}
        {shown && <CompilerToggle shown={shown.report} />}
        <button type="button" class="close" aria-label="Close the kernel" onClick={release}>
          ×
        </button>
      </div>
      <div class="kernels" data-stale={shown?.stale || undefined}>
        {shown && <WrongResults wrong={wrongOf(shown.report, isPeer ? "peer" : "compiled")} />}
        {isPeer && shown.report.peer?.message && <p class="note">{shown.report.peer.message}</p>}
        {!isPeer && <DisturbedTimes graph={shown?.graph} />}
        {selected ? (
          <>
            <KernelList kernels={kernels} selected={place} isPeer={isPeer} />
            <KernelCard key={`${isPeer} ${place}`} kernel={selected} place={place} graph={isPeer ? null : (shown?.graph ?? null)} />
          </>
        ) : (
          <Empty>{isRunning.value ? "Kernels show here when they are written." : "No kernel was made."}</Empty>
        )}
      </div>
    </section>
  );
}

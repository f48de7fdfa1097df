/** Beside the map: the kernel that is selected, what it is and takes in two lines, and its code at full height. */
import { ref } from "../../links";
import type { Graph, Kernel, Report } from "../../report";
import { compilerShown, isRunning, kernelPicked, kernelShown, links, newestWith, openKernel, predictedFor, refs, release, shownGraph } from "../../state";
import { wrongOf } from "../../wrong";
import { KernelTag } from "../KernelTag";
import { Empty } from "../Scroller";
import { WrongResults } from "../WrongResults";
import { Name } from "../Name";
import { reproducerOf } from "./exports";
import { KernelCode } from "./KernelCode";
import { KernelMenu } from "./KernelMenu";
import { factsOf, kindInWords } from "./kernelWords";

/** The kernel that covers the same operations stays open, where the other compiler has one. */
function showCompiler(id: "ours" | "peer"): void {
  if (compilerShown.value === id) return;
  const [from, to] = id === "peer" ? ([refs.value.kernel, "peer"] as const) : ([ref.peer, "kernel"] as const);
  const [same] = links.value.numbersOf(from(kernelShown.value), to, to === "kernel" ? (shownGraph.value?.name ?? null) : null);
  openKernel(same ?? 0, id);
}

function CompilerToggle({ shown }: { shown: Report }) {
  if (!shown.peer || shown.peer.kernels.length === 0) return null;
  const names = [["ours", "ours"], ["peer", shown.peer.name]] as const;
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
  return graph?.disturbed ? <p class="note" role="note">{`Measured times are not reliable. ${graph.disturbed}`}</p> : null;
}

function Steps({ kernels, place, isPeer }: { kernels: Kernel[]; place: number; isPeer: boolean }) {
  const step = (to: number, label: string, mark: string) => (
    <button type="button" aria-label={label} title={label} disabled={to < 0 || to >= kernels.length} onClick={() => openKernel(to, isPeer ? "peer" : "ours")}>
      {mark}
    </button>
  );
  return (
    <div class="steps">
      {step(place - 1, "Previous kernel", "‹")}
      <KernelMenu kernels={kernels} selected={place} isPeer={isPeer} />
      {step(place + 1, "Next kernel", "›")}
    </div>
  );
}

function About({ kernel, graph, shown }: { kernel: Kernel; graph: Graph | null; shown: Report }) {
  const { device_name: name, device } = shown.environment;
  const code = graph && kernel.kind !== "extern" && shown.id && shown.status !== "running" ? reproducerOf(shown, graph, kernel) : null;
  return (
    <div class="about">
      <p class="about-kind">
        <span>{kindInWords(kernel, graph)}</span>
        <CompilerToggle shown={shown} />
      </p>
      <p class="about-facts">
        {factsOf(kernel, name || device, predictedFor.value).map(({ name: what, value, hint, isPredicted }) => (
          <span key={`${what} ${value}`} title={hint} class={isPredicted ? "predicted" : ""}>
            <strong>{value}</strong> {what}
          </span>
        ))}
        {code && (
          <a class="reproducer" href={code} download title="A Python file that makes inputs, launches this kernel, checks it and times it">
            Python file
          </a>
        )}
      </p>
    </div>
  );
}

export function Side() {
  const shown = newestWith((graph) => graph.kernels.length > 0);
  const isPeer = compilerShown.value === "peer" && shown?.report.peer != null;
  const kernels = (isPeer ? shown?.report.peer?.kernels : shown?.graph.kernels) ?? [];
  const place = kernelShown.value;
  const kernel = kernels[place];
  const graph = isPeer ? null : (shown?.graph ?? null);
  return (
    <section class="pane" id="pane-side" data-pane="side" aria-label="Kernel" tabIndex={-1}>
      <div class="pane-bar">
        <h2 class="kernel-heading" data-ref={isPeer ? ref.peer(place) : refs.value.kernel(place)}>
          {kernel && !isPeer && <KernelTag place={place} />}
          {kernel ? <Name text={kernel.name} /> : "Kernel"}
        </h2>
        {kernels.length > 0 && <Steps kernels={kernels} place={place} isPeer={isPeer} />}
        {kernelPicked.value !== null && (
          <button type="button" class="close" aria-label="Close the kernel" onClick={release}>
            ×
          </button>
        )}
      </div>
      <div class="kernels" data-stale={shown?.stale || undefined}>
        {shown && <WrongResults wrong={wrongOf(shown.report, isPeer ? "peer" : "compiled")} />}
        {isPeer && shown.report.peer?.message && <p class="note">{shown.report.peer.message}</p>}
        {!isPeer && <DisturbedTimes graph={shown?.graph} />}
        {kernel && shown ? (
          <>
            <About kernel={kernel} graph={graph} shown={shown.report} />
            <KernelCode key={`${isPeer} ${place}`} kernel={kernel} place={place} graph={graph} id={shown.report.status === "running" ? null : shown.report.id || null} />
          </>
        ) : (
          <Empty>{isRunning.value ? "Kernels appear here when they are generated." : "No kernel was made."}</Empty>
        )}
      </div>
    </section>
  );
}

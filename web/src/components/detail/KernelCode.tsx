import { ref } from "../../links";
import type { Graph, Kernel } from "../../report";
import { computedBy } from "../../graph/covering";
import { refsOf } from "../../links";
import { refs } from "../../state";
import { inAddress, text } from "../../view";
import { CodeView } from "../CodeView";
import { Facts } from "../Facts";
import { Empty, Scroller } from "../Scroller";
import { TabPanel, Tabs } from "../Tabs";
import { KernelLevels } from "./KernelLevels";
import { Loop } from "./LoopList";
import { MachineCode } from "./MachineCode";
import { originsOf, type Rendering, renderingsOf } from "./renderings";

/** The text that is open, of whichever kernel; one that a kernel does not have gives way to its own. */
const opened = inAddress<string | null>("text", null, text);

const LEVELS = "levels";
const LOOPS = "loops";
const MACHINE = "machine";

function Source({ kernel, place, index, shown, isPeer }: { kernel: Kernel; place: number; index: number; shown: Rendering; isPeer: boolean }) {
  return (
    <>
      <CodeView
        label={`${shown.label} source of ${kernel.name}`}
        source={shown.source}
        language={shown.language}
        origins={originsOf(isPeer ? { kernelLine: (kernelPlace, _rendering, line) => ref.peerLine(kernelPlace, line) } : refs.value, place, index, shown.lines)}
      />
      {(shown.facts.length > 0 || shown.check) && (
        <Facts facts={shown.facts}>
          {shown.check && (
            <div class="fact-check">
              <dt>checked</dt>
              <dd>{shown.check}</dd>
            </div>
          )}
        </Facts>
      )}
    </>
  );
}

function Loops({ kernel, graph }: { kernel: Kernel; graph: Graph }) {
  const nodes = new Set(computedBy(kernel));
  const loops = graph.loops.filter((loop) => nodes.has(loop.name));
  if (loops.length === 0) return <Empty>This kernel has no loops of its own.</Empty>;
  return (
    <Scroller label={`Loops of ${kernel.name}`}>
      {kernel.computes_again.length > 0 && <p class="note">{`Of another kernel, and computed again here: ${kernel.computes_again.join(", ")}.`}</p>}
      {kernel.left_out.length > 0 && <p class="note">{`Fused into this kernel, but computed only where other kernels need them: ${kernel.left_out.join(", ")}.`}</p>}
      {loops.map((loop) => (
        <Loop key={loop.name} loop={loop} />
      ))}
    </Scroller>
  );
}

/** Lines of the kernel's texts by their refs. The peer's have nothing that they lead to, but light each other. */
function linesOf(kernel: Kernel, place: number, graph: Graph | null): (language: string, line: number) => string {
  const from = graph === null ? refsOf({ name: "peer" }) : refs.value;
  const rendering = (language: string): number => (kernel.kind === language ? 0 : 1 + kernel.also.findIndex((one) => one.language === language));
  return (language, line) => from.kernelLine(place, rendering(language), line);
}

/** The kernel's texts, its machine code, where its values live, and its loops. `graph` is that of the kernel; the peer's
 * have none here. `id` is that of the exploration, once that has ended. */
export function KernelCode({ kernel, place, graph, id }: { kernel: Kernel; place: number; graph: Graph | null; id: string | null }) {
  const renderings = renderingsOf(kernel);
  const launch = graph?.traffic?.fused?.launches[place];
  const others = [
    ...(id !== null && (kernel.kind !== "extern" || kernel.own) ? [{ id: MACHINE, label: "Machine code" }] : []),
    ...(launch ? [{ id: LEVELS, label: "Memory" }] : []),
    ...(graph ? [{ id: LOOPS, label: "Loops" }] : []),
  ];
  const tabs = [...renderings.map(({ id, label }) => ({ id, label })), ...others];
  const selected = tabs.find(({ id }) => id === opened.value)?.id ?? "source";
  const index = Math.max(0, renderings.findIndex(({ id }) => id === selected));
  const shown = renderings[index];
  return (
    <div class="kernel-card">
      <Tabs name="rendering" label={`Renderings of ${kernel.name}`} selected={selected} onSelect={(id) => (opened.value = id)} tabs={tabs} />
      <TabPanel name="rendering" selected={selected}>
        {selected === MACHINE && id !== null ? (
          <MachineCode id={id} kernel={kernel} graph={graph?.name ?? null} refOf={linesOf(kernel, place, graph)} />
        ) : selected === LEVELS && graph && launch ? (
          <KernelLevels graph={graph} kernel={kernel} launch={launch} />
        ) : selected === LOOPS && graph ? (
          <Loops kernel={kernel} graph={graph} />
        ) : (
          shown && <Source kernel={kernel} place={place} index={index} shown={shown} isPeer={graph === null} />
        )}
      </TabPanel>
    </div>
  );
}

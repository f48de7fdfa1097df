import type { ComponentChildren } from "preact";
import * as format from "../../format";
import { readsOf, type Share, writesOf } from "../../moved";
import type { Graph, Kernel, KernelArtifact, KernelLevels as Levels, LaunchTraffic } from "../../report";
import { refs, report } from "../../state";
import { Scroller } from "../Scroller";

/** How a figure came about; a prediction is never shown as a count. */
type Basis = "counted" | "predicted" | "assembled" | "not known";

function Level({ name, basis, children }: { name: string; basis: string; children: ComponentChildren }) {
  return (
    <li class="level">
      <h3>
        {name} <span class="chip">{basis}</span>
      </h3>
      <div>{children}</div>
    </li>
  );
}

function Tensors({ does, shares }: { does: string; shares: Share[] }) {
  if (shares.length === 0) return null;
  return (
    <p>
      <span class="level-does">{does}</span>
      {shares.map(({ tensor, bytes }) => (
        <span class="share" key={tensor} data-ref={refs.value.buffer(tensor)}>
          <code>{tensor}</code> <span class="quiet">{format.bytes(bytes)}</span>
        </span>
      ))}
    </p>
  );
}

function Values({ does, names, graph }: { does: string; names: string[]; graph: Graph }) {
  if (names.length === 0) return null;
  const bytesOf = new Map(graph.buffers.map((buffer) => [buffer.name, buffer.bytes]));
  return (
    <p>
      <span class="level-does">{does}</span>
      {names.map((name) => (
        <span class="share" key={name} data-ref={refs.value.loop(name)}>
          <code>{name}</code> <span class="quiet">{format.bytes(bytesOf.get(name))}</span>
        </span>
      ))}
    </p>
  );
}

/** What is loaded more than once comes from a cache while that holds it. */
function Caches({ levels }: { levels: Levels }) {
  const again = levels.loads.filter((one) => one.loaded_bytes > one.memory_bytes && one.memory_bytes > 0);
  if (again.length === 0) return <p>Nothing is loaded twice: caches save nothing here.</p>;
  return (
    <>
      <p>
        <span class="level-does">loaded again</span>
        {again.map((one) => (
          <span class="share" key={one.tensor} data-ref={refs.value.buffer(one.tensor)}>
            <code>{one.tensor}</code> <span class="quiet">{`${format.bytes(one.loaded_bytes - one.memory_bytes)}: ${format.ratio(one.loaded_bytes / one.memory_bytes)} in all`}</span>
          </span>
        ))}
      </p>
      {levels.passes > 1 && (
        <p class="predicted-text">
          {`Predicted for ${levels.target}: of the repeated loads of ${levels.passes} passes, ${levels.missed_bytes === 0 ? "all are still in the cache" : `${format.bytes(levels.missed_bytes)} come from memory again`}.`}
        </p>
      )}
    </>
  );
}

/** The kernel itself where it was compiled for a GPU, else the one for the target beside it. */
function assembledOf(kernel: Kernel): { from: Kernel | KernelArtifact; basis: string } | null {
  if (kernel.shared_bytes !== null) return { from: kernel, basis: "assembled" };
  const other = kernel.also.find((one) => one.language === "triton" && one.shared_bytes !== null);
  return other ? { from: other, basis: `assembled for ${other.target}` } : null;
}

function shapeOf(levels: Levels): string {
  const tile = Object.entries(levels.tile).map(([axis, size]) => `${axis} ${size}`);
  const passes = levels.passes > 1 ? `, ${levels.passes} passes over the reduced data` : "";
  return `${format.count(levels.programs, "program")} of ${levels.threads} threads${tile.length > 0 ? `, ${tile.join(" × ")}` : ""}${passes}`;
}

function Inside({ graph, kernel, levels }: { graph: Graph; kernel: Kernel; levels: Levels }) {
  const assembled = assembledOf(kernel);
  const unknown: Basis = "not known";
  return (
    <>
      <Level name="Caches" basis={`counted, for ${levels.target}`}>
        <Caches levels={levels} />
      </Level>
      <Level name="Shared memory" basis={assembled?.basis ?? unknown}>
        <p>{assembled ? `${format.bytes(assembled.from.shared_bytes)} a program` : "The kernel was not assembled, so its resources are not known."}</p>
        <Values does="threads combine" names={levels.combined} graph={graph} />
      </Level>
      <Level name="Registers" basis={assembled?.basis ?? unknown}>
        {assembled && assembled.from.registers !== null && (
          <p>
            {`${assembled.from.registers} a thread`}
            {assembled.from.spills ? `, and ${format.bytes(assembled.from.spills)} that did not fit and go through memory` : ", nothing spilled"}
          </p>
        )}
        <Values does="never leave them" names={levels.kept} graph={graph} />
      </Level>
    </>
  );
}

/** The bytes over the time that they took where the kernel ran: on the CPU that is the C++ kernel. */
function Rate({ kernel }: { kernel: Kernel }) {
  if (kernel.gb_per_s === null || kernel.measured_us === null) return null;
  const peak = kernel.percent_of_peak === null ? "" : `, ${kernel.percent_of_peak.toFixed(0)} % of the peak`;
  return <p>{`Measured on ${report.value?.environment.device_name || "this device"}: ${format.bytes(kernel.bytes)} in ${format.microseconds(kernel.measured_us)}, ${format.rate(kernel.gb_per_s)} GB/s${peak}.`}</p>;
}

/** A product and what is fused with it are one kernel on a GPU alone. */
function onThisMachine({ steps }: Kernel): string {
  const called = (steps ?? []).flatMap(({ call }) => (call === null ? [] : [call]));
  if (called.length === 0) return "On this machine the C++ kernel runs. It keeps the same values in the registers and the first cache of a core.";
  return `On this machine the library computes ${called.join(" and ")}. What passes between it and the C++ kernel goes through memory, and is not among the bytes above.`;
}

/** Where the values of a kernel live, from the far and large to the near and small. */
export function KernelLevels({ graph, kernel, launch }: { graph: Graph; kernel: Kernel; launch: LaunchTraffic }) {
  const { levels } = kernel;
  return (
    <Scroller label={`Levels of memory of ${kernel.name}`}>
      {levels && <p class="note">{`The Triton kernel for ${levels.target}, ${levels.plan}: ${shapeOf(levels)}.`}</p>}
      <ol class="levels">
        <Level name="Memory" basis="counted">
          <Tensors does="reads once" shares={readsOf(launch.tensors)} />
          <Tensors does="writes once" shares={writesOf(launch.tensors)} />
          <Rate kernel={kernel} />
        </Level>
        {levels ? (
          <Inside graph={graph} kernel={kernel} levels={levels} />
        ) : (
          <Level name="Caches, shared memory, registers" basis="not known">
            <p>{kernel.kind === "extern" ? "A library call manages its own levels of memory." : "This kernel is for no GPU."}</p>
          </Level>
        )}
      </ol>
      {levels && kernel.kind === "cpp" && <p class="note quiet">{onThisMachine(kernel)}</p>}
    </Scroller>
  );
}

/** What a kernel is and what is known of it, in words. Pure. */
import * as format from "../../format";
import { computedBy } from "../../graph/covering";
import type { Graph, Kernel, KernelArtifact, KernelLevels, PeerKernel, LoopNode } from "../../report";

/** The loops that it goes through, by what is least like the others: a reduction says more than what feeds it. */
function loopsOf(kernel: Kernel, graph: Graph | null): LoopNode[] {
  const nodes = new Set(computedBy(kernel));
  return graph?.loops.filter((loop) => nodes.has(loop.name)) ?? [];
}

function sizeOfReduction(loops: readonly LoopNode[]): string {
  const sizes = [...new Set(loops.filter((loop) => loop.reduction_sizes.length > 0).map((loop) => format.shape(loop.reduction_sizes)))];
  return sizes.length === 1 ? ` over ${sizes[0]} elements` : "";
}

function rows(levels: KernelLevels): string {
  const count = Number(levels.tile.XBLOCK ?? levels.tile.x ?? 0);
  if (!count) return "";
  return count === 1 ? ", one row a program" : `, ${count} rows a program`;
}

function elements(levels: KernelLevels): string {
  const sizes = Object.values(levels.tile).map(Number).filter((size) => size > 1);
  const count = sizes.reduce((product, size) => product * size, 1);
  return sizes.length > 0 ? `, ${format.count(count, "element")} a program` : "";
}

const PLANS: Record<KernelLevels["plan"], (levels: KernelLevels, over: string) => string> = {
  pointwise: (levels) => `element by element${elements(levels)}`,
  persistent: (levels, over) => `reduction${over}, a row in registers${rows(levels)}`,
  looped: (levels, over) => `reduction${over} in ${format.count(levels.passes, "pass")}${rows(levels)}`,
  split: (_levels, over) => `reduction${over}, split over several programs`,
  team: (_levels, over) => `reduction${over}, programs share a row`,
  look_back: (_levels, over) => `running sums${over}, each program waits for the one before`,
  batch: (_levels) => "independent parts side by side",
  product: (levels) => `matrix product with fused operations${tile(levels)}`,
};

function tile(levels: KernelLevels): string {
  const sizes = Object.values(levels.tile).map(Number);
  return sizes.length > 0 ? `, tiles of ${sizes.join(" × ")}` : "";
}

/** Programs and registers are those of the Triton kernel. Beside a C++ kernel, which has neither, it says so. */
function ofTwin(kernel: Kernel, target: string | null): string {
  return kernel.kind === "cpp" && target ? ` (${target})` : "";
}

/** `reduction over 128 elements, a row in registers, 4 rows a program`. */
export function kindInWords(kernel: Kernel | PeerKernel, graph: Graph | null): string {
  if ("form" in kernel) return kernel.fuses.length > 0 ? `${kernel.form} of ${kernel.fuses.join(", ")}` : kernel.form;
  if (kernel.own) return "your own Triton kernel";
  if (kernel.kind === "extern") return "library call";
  const loops = loopsOf(kernel, graph);
  if (kernel.levels) return `${PLANS[kernel.levels.plan](kernel.levels, sizeOfReduction(loops))}${ofTwin(kernel, kernel.levels.target)}`;
  if (loops.some((loop) => loop.kind === "scatter")) return "writes at computed indices";
  if (loops.some((loop) => loop.kind === "scan")) return `running sums${sizeOfReduction(loops)}`;
  if (loops.some((loop) => loop.kind === "reduction")) return `reduction${sizeOfReduction(loops)}`;
  if (loops.length > 0) return "element by element";
  return kernel.kind === "triton" ? "Triton kernel" : "C++ kernel";
}

export interface Fact {
  name: string;
  value: string;
  /** Said of a figure on hover. */
  hint?: string | undefined;
  isPredicted?: boolean | undefined;
}

/** What the assembler found, of the kernel itself or of its Triton twin for the target. */
function assembled(kernel: Kernel): { from: Kernel | KernelArtifact; target: string | null } | null {
  if (kernel.registers !== null) return { from: kernel, target: null };
  const twin = kernel.also.find((one) => one.registers !== null);
  return twin ? { from: twin, target: twin.target } : null;
}

/** Time, bytes, rate, share of peak, registers: what the line under its name says. A missing figure is left out. */
export function factsOf(kernel: Kernel, device: string, predictedFor: string): Fact[] {
  const made = assembled(kernel);
  const facts: (Fact | null)[] = [
    kernel.measured_us === null ? null : { name: "measured", value: format.microseconds(kernel.measured_us), hint: `The median, on ${device}` },
    kernel.predicted_us === null ? null : { name: `for ${predictedFor}`, value: format.microseconds(kernel.predicted_us), hint: "Predicted by the cost model", isPredicted: true },
    kernel.bytes ? { name: "moved", value: format.bytes(kernel.bytes), hint: "Counted: each element once" } : null,
    kernel.gb_per_s === null ? null : { name: "", value: `${format.rate(kernel.gb_per_s)} GB/s`, hint: "Bytes by the measured time" },
    kernel.percent_of_peak === null ? null : { name: "of peak", value: `${kernel.percent_of_peak.toFixed(0)} %`, hint: "Of the memory bandwidth of the device" },
    kernel.flops ? { name: "", value: format.operations(kernel.flops), hint: "Floating-point operations, counted" } : null,
    made && made.from.registers !== null ? { name: `${made.from.registers === 1 ? "register" : "registers"}${ofTwin(kernel, made.target)}`, value: String(made.from.registers), hint: `Of a thread, by the assembler${made.target ? ` for ${made.target}` : ""}` } : null,
    made && made.from.spills !== null ? { name: `spilled${ofTwin(kernel, made.target)}`, value: made.from.spills ? format.bytes(made.from.spills) : "nothing", hint: "Values that did not fit into a thread's registers" } : null,
  ];
  return facts.filter((fact) => fact !== null);
}

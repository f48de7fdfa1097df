/** The levels of a kernel's code and what its instructions say, in words. Pure. */
import * as format from "../../format";
import type { CodeLevel, KernelLine, MachineCode, MemoryAccess } from "../../report";
import type { LineOrigin } from "../CodeView";

export const LEVEL_LABELS: Record<CodeLevel["name"], [label: string, language: string]> = {
  ttir: ["TTIR", "ptx"],
  ttgir: ["TTGIR", "ptx"],
  llvm: ["LLVM IR", "llvm"],
  ptx: ["PTX", "ptx"],
  sass: ["SASS", "gas"],
  amdgcn: ["AMD GCN", "gas"],
  assembly: ["Assembly", "gas"],
};

/**
 * Where each line of a level comes from. Lines that come from one line of the kernel's source have that line's ref: one
 * of them lights the others, the source's line, and through it the reader's own.
 */
export function originsOfLevel(level: CodeLevel, lines: readonly KernelLine[], refOf: (line: number) => string): Map<number, LineOrigin> {
  const userLines = new Map(lines.map((one) => [one.line, one.user_lines]));
  return new Map(level.lines.map(([line, from]) => [line, { ref: refOf(from), userLines: userLines.get(from) ?? [], from }]));
}

/** The same of the kernel's source: every line that some level knows can be pointed at. */
export function originsOfSource(code: MachineCode, lines: readonly KernelLine[], refOf: (line: number) => string): Map<number, LineOrigin> {
  const userLines = new Map(lines.map((one) => [one.line, one.user_lines]));
  const known = new Set([...userLines.keys(), ...code.levels.flatMap((level) => level.lines.map(([, from]) => from))]);
  return new Map([...known].map((line) => [line, { ref: refOf(line), userLines: userLines.get(line) ?? [] }]));
}

export interface CodeFact {
  value: string;
  name: string;
  hint: string;
}

/** In one line: what the last level takes, and what that allows. */
export function codeFacts(code: MachineCode): CodeFact[] {
  const facts: (CodeFact | null)[] = [
    code.registers === null ? null : { value: String(code.registers), name: code.target.startsWith("gfx") ? "vector registers" : "registers", hint: "Of a thread, by the assembler" },
    code.spills === null ? null : { value: code.spills ? format.bytes(code.spills) : "nothing", name: "spilled", hint: "Values that did not fit into a thread's registers" },
    code.shared_bytes === null ? null : { value: format.bytes(code.shared_bytes), name: "shared memory", hint: "Of a program" },
    occupancyFact(code),
    code.language === "cpp" ? null : { value: code.matrix_instructions.length > 0 ? "on" : "not on", name: "matrix units", hint: code.matrix_instructions.join(", ") || "It has no instruction for a matrix unit" },
    widthFact(code, false),
    widthFact(code, true),
    code.language === "cpp" ? { value: `${vectorised(code)} of ${code.loops.length}`, name: "innermost loops on vectors", hint: "Loops with more instructions on vectors than on single numbers" } : null,
  ];
  return facts.filter((fact) => fact !== null);
}

function occupancyFact({ occupancy }: MachineCode): CodeFact | null {
  if (!occupancy) return null;
  const limits = occupancy.limits.map(({ by, programs }) => `${by}: ${format.count(programs, "program")}`).join(", ");
  return { value: `${occupancy.percent} %`, name: occupancy.percent >= 100 ? "occupancy" : `occupancy, limited by ${occupancy.limited_by.join(" and ")}`, hint: `${occupancy.warps} of ${occupancy.most_warps} warps. ${limits}. ${occupancy.source}` };
}

function widthFact(code: MachineCode, isStore: boolean): CodeFact | null {
  const widths = code.accesses.filter((one) => one.space === "global" && one.is_store === isStore && one.bits !== null).map((one) => one.bits ?? 0);
  if (widths.length === 0) return null;
  const [least, most] = [Math.min(...widths), Math.max(...widths)];
  return { value: least === most ? `${most}-bit` : `${least}- to ${most}-bit`, name: isStore ? "stores" : "loads", hint: "Of one thread, to or from the device's memory" };
}

export const vectorised = (code: MachineCode): number => code.loops.filter((loop) => loop.packed > loop.scalar).length;

export interface MixPart {
  kind: string;
  count: number;
  share: number;
}

/** Instructions by what they do, the most frequent first. */
export function mixOf(code: MachineCode): MixPart[] {
  const parts = Object.entries(code.instructions as Record<string, number>).filter(([, count]) => count > 0);
  const all = parts.reduce((sum, [, count]) => sum + count, 0);
  return parts.map(([kind, count]) => ({ kind, count, share: count / all })).sort((one, other) => other.count - one.count);
}

export interface AccessGroup {
  instruction: string;
  space: MemoryAccess["space"];
  isStore: boolean;
  bits: number | null;
  count: number;
  sourceLines: number[];
}

/** Loads and stores that are alike in all but their place. */
export function accessGroups(code: MachineCode): AccessGroup[] {
  const groups = new Map<string, AccessGroup>();
  for (const one of code.accesses) {
    const known = groups.get(one.instruction);
    const group = known ?? { instruction: one.instruction, space: one.space, isStore: one.is_store, bits: one.bits, count: 0, sourceLines: [] };
    if (!known) groups.set(one.instruction, group);
    group.count += 1;
    if (one.source_line !== null && !group.sourceLines.includes(one.source_line)) group.sourceLines.push(one.source_line);
  }
  return [...groups.values()];
}

/** The texts of a kernel: its own, and the same kernel for other targets. Pure. */
import * as format from "../../format";
import type { GraphRefs } from "../../links";
import type { Kernel, KernelArtifact, KernelLine } from "../../report";
import type { LineOrigin } from "../CodeView";

export interface Rendering {
  /** Its name in the address: kernels that have such a text keep it open from one to the next. */
  id: string;
  label: string;
  /** For who highlights it. */
  language: string;
  source: string;
  lines: KernelLine[];
  /** How it was generated, and checked. */
  facts: [string, string][];
  check: string | null;
}

const OWN: Record<Kernel["kind"], string> = { triton: "Triton", cpp: "C++", extern: "Call" };
const OTHER: Record<KernelArtifact["language"], [string, string]> = {
  triton: ["Triton", "python"],
  cpp: ["C++", "cpp"],
  ptx: ["PTX", "ptx"],
};

const SETTINGS: Record<string, string> = { num_warps: "warps", num_stages: "stages", workspace_bytes: "workspace" };

function settingsOf(from: Kernel | KernelArtifact): [string, string][] {
  const settings = Object.entries(from.config)
    .filter(([name]) => name !== "plan")
    .map(([name, value]): [string, string] => [SETTINGS[name] ?? name, name === "workspace_bytes" ? format.bytes(Number(value)) : format.plain(value)]);
  const shared: [string, string][] = from.shared_bytes ? [["shared memory", format.bytes(from.shared_bytes)]] : [];
  return [...settings, ...shared];
}

/** The kernel's own text is rendering 0, as `refsOf` counts, and those of `also` follow. */
export function renderingsOf(kernel: Kernel): Rendering[] {
  const own: Rendering = {
    id: "source",
    label: kernel.own ? "Triton" : OWN[kernel.kind],
    language: kernel.language,
    source: kernel.source,
    lines: kernel.lines,
    facts: [...(kernel.grid ? [["grid", format.shape(kernel.grid)] as [string, string]] : []), ...settingsOf(kernel)],
    check: null,
  };
  return [own, ...kernel.also.map(renderingOf)];
}

function renderingOf(artifact: KernelArtifact): Rendering {
  const [name, language] = OTHER[artifact.language];
  const error = artifact.max_error === null ? null : `largest error ${format.scientific(artifact.max_error)}`;
  return {
    id: artifact.language,
    label: artifact.language === "cpp" ? name : `${name} ${artifact.target}`,
    language,
    source: artifact.source,
    lines: artifact.lines,
    facts: settingsOf(artifact),
    check: [artifact.check, error].filter(Boolean).join(" · ") || null,
  };
}

/** Where each line of a rendering comes from, by its number. */
export function originsOf(refs: Pick<GraphRefs, "kernelLine">, place: number, rendering: number, lines: KernelLine[]): Map<number, LineOrigin> {
  return new Map(
    lines
      .filter((line) => line.nodes.length + line.user_lines.length > 0)
      .map((line) => [line.line, { ref: refs.kernelLine(place, rendering, line.line), userLines: line.user_lines }]),
  );
}

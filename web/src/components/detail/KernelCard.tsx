import { useState } from "preact/hooks";
import * as format from "../../format";
import type { Graph, Kernel, KernelArtifact, KernelLine } from "../../report";
import { predictedFor, refs } from "../../state";
import { CodeView, type LineOrigin } from "../CodeView";
import { KernelLevels } from "./KernelLevels";
import { TabPanel, Tabs } from "../Tabs";

interface Rendering {
  label: string;
  language: string;
  source: string;
  lines: KernelLine[];
  facts: [string, string][];
  check: string | null;
}

const PREDICTED = "predicted";

const LANGUAGES: Record<KernelArtifact["language"], [string, string]> = {
  triton: ["Triton", "python"],
  cpp: ["C++", "cpp"],
  ptx: ["PTX", "ptx"],
};

function known(facts: [string, string | null | undefined][]): [string, string][] {
  return facts.filter((fact): fact is [string, string] => Boolean(fact[1]));
}

function resourceFacts(from: Kernel | KernelArtifact): [string, string | null | undefined][] {
  return [
    ["registers", from.registers?.toString()],
    ["spills", from.spills?.toString()],
    ["shared", from.shared_bytes ? format.bytes(from.shared_bytes) : null],
    ...Object.entries(from.config).map(([name, value]): [string, string] => [name, format.plain(value)]),
  ];
}

function ownRendering(kernel: Kernel): Rendering {
  const label = kernel.kind === "triton" ? "Triton" : kernel.kind === "extern" ? "Call" : "C++";
  const facts = known([
    ["bytes", format.bytes(kernel.bytes || null)],
    [PREDICTED, format.microseconds(kernel.predicted_us)],
    ["measured", format.microseconds(kernel.measured_us)],
    ["rate", kernel.gb_per_s === null ? null : `${format.rate(kernel.gb_per_s)} GB/s`],
    ["of peak", kernel.percent_of_peak === null ? null : `${kernel.percent_of_peak.toFixed(0)} %`],
    ["flops", kernel.flops ? kernel.flops.toLocaleString("en-US") : null],
    ["grid", kernel.grid ? format.shape(kernel.grid) : null],
    ...resourceFacts(kernel),
  ]);
  return { label, language: kernel.language, source: kernel.source, lines: kernel.lines, facts, check: null };
}

function artifactRendering(artifact: KernelArtifact): Rendering {
  const [name, language] = LANGUAGES[artifact.language];
  const error = artifact.max_error === null ? null : `largest error ${format.scientific(artifact.max_error)}`;
  return {
    label: artifact.language === "cpp" ? name : `${name} ${artifact.target}`,
    language,
    source: artifact.source,
    lines: artifact.lines,
    facts: known(resourceFacts(artifact)),
    check: [artifact.check, error].filter(Boolean).join(" · ") || null,
  };
}

function originsOf(place: number, rendering: number, lines: KernelLine[]): Map<number, LineOrigin> {
  return new Map(
    lines
      .filter((line) => line.nodes.length + line.user_lines.length > 0)
      .map((line) => [line.line, { ref: refs.value.kernelLine(place, rendering, line.line), userLines: line.user_lines }]),
  );
}

const LEVELS = "levels";

/** `graph` is that of the kernel; the peer's kernels have none here. */
export function KernelCard({ kernel, place, graph }: { kernel: Kernel; place: number; graph: Graph | null }) {
  const [selected, select] = useState("0");
  const renderings = [ownRendering(kernel), ...kernel.also.map(artifactRendering)];
  const launch = graph?.traffic?.fused?.launches[place];
  const isOfLevels = selected === LEVELS && launch !== undefined;
  const index = isOfLevels ? 0 : Math.min(Number(selected) || 0, renderings.length - 1);
  const shown = renderings[index];
  if (!shown) return null;
  const tab = isOfLevels ? LEVELS : String(index);
  return (
    <div class="kernel-card">
      <Tabs
        name="rendering"
        label={`Renderings of ${kernel.name}`}
        selected={tab}
        onSelect={select}
        tabs={[
          ...renderings.map((rendering, number) => ({ id: String(number), label: rendering.label })),
          ...(launch ? [{ id: LEVELS, label: "Memory" }] : []),
        ]}
      />
      <TabPanel name="rendering" selected={tab}>
        {isOfLevels ? (
          <KernelLevels graph={graph as Graph} kernel={kernel} launch={launch} />
        ) : (
          <Source kernel={kernel} place={place} index={index} shown={shown} isPeer={graph === null} />
        )}
      </TabPanel>
    </div>
  );
}

interface SourceProps {
  kernel: Kernel;
  place: number;
  index: number;
  shown: Rendering;
  isPeer: boolean;
}

function Source({ kernel, place, index, shown, isPeer }: SourceProps) {
  return (
    <>
      {(shown.facts.length > 0 || shown.check) && (
        <dl class="facts">
          {shown.facts.map(([name, value]) => (
            <div key={name} class={name === PREDICTED ? "predicted" : ""}>
              <dt>{name === PREDICTED ? `predicted, ${predictedFor.value}` : name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
          {shown.check && (
            <div class="fact-check">
              <dt>checked</dt>
              <dd>{shown.check}</dd>
            </div>
          )}
        </dl>
      )}
      <CodeView
        label={`${shown.label} source of ${kernel.name}`}
        source={shown.source}
        language={shown.language}
        origins={isPeer ? new Map() : originsOf(place, index, shown.lines)}
      />
    </>
  );
}

/** One kernel from its source to machine code: compiled on demand for the target that the reader chooses, every level
 * beside the source, and what the last one says. */
import { useMemo } from "preact/hooks";
import * as format from "../../format";
import type { KernelLine, Kernel, MachineCode as Code, Pass } from "../../report";
import { askAgain, choicesFor, machineCodeOf, targetOf } from "../../machineCode";
import type { KernelCode } from "../../api";
import { report } from "../../state";
import { inAddress, text } from "../../view";
import { CodeView, shortList } from "../CodeView";
import { useNow } from "../Progress";
import { Empty, Scroller } from "../Scroller";
import { TabPanel, Tabs } from "../Tabs";
import { accessGroups, codeFacts, LEVEL_LABELS, mixOf, originsOfLevel, originsOfSource } from "./codeLevels";

/** The level that is open, and what the kernel is compiled for. One that a kernel does not have gives way to its last. */
const levelShown = inAddress<string | null>("code", null, text);
const target = inAddress<string | null>("for", null, text);

const FACTS = "facts";
const PASSES = "passes";

interface Props {
  id: string;
  kernel: Kernel;
  graph: string | null;
  /** The ref of a line of the text for the target's language. */
  refOf(language: "triton" | "cpp", line: number): string;
}

function textFor(kernel: Kernel, language: "triton" | "cpp"): { source: string; lines: KernelLine[] } {
  return kernel.kind === language ? kernel : (kernel.also.find((one) => one.language === language) ?? kernel);
}

export function MachineCode({ id, kernel, graph, refOf }: Props) {
  const reportTarget = report.value?.environment.target ?? "";
  const choices = choicesFor(kernel, reportTarget);
  const chosen = targetOf(kernel, reportTarget, target.value);
  if (chosen === null) return <Empty>This kernel has no text to compile.</Empty>;
  const asked: KernelCode = { id, kernel: kernel.name, graph, target: chosen };
  return (
    <div class="machine">
      <div class="machine-bar">
        <label>
          Compiled for{" "}
          <select value={chosen} onChange={(event) => (target.value = event.currentTarget.value)}>
            {choices.map((choice) => (
              <option key={choice.target} value={choice.target}>
                {choice.label}
              </option>
            ))}
          </select>
        </label>
        <span>counted, not run</span>
      </div>
      <Answer asked={asked} kernel={kernel} refOf={refOf} />
    </div>
  );
}

function Answer({ asked, kernel, refOf }: { asked: KernelCode; kernel: Kernel; refOf: Props["refOf"] }) {
  const told = machineCodeOf(asked).value;
  if (told.state === "compiling") {
    return (
      <div class="machine-state" role="status">
        <p>{`Compiling ${asked.kernel} for ${asked.target === "host" ? "this server" : asked.target} …`}</p>
        <Clock since={told.since} />
      </div>
    );
  }
  if (told.state === "failed") {
    return (
      <div class="machine-state" role="alert">
        <p class="machine-failure">{told.message}</p>
        {told.again && (
          <button type="button" onClick={() => askAgain(asked)}>
            Try again
          </button>
        )}
      </div>
    );
  }
  return <Levels code={told.code} kernel={kernel} refOf={refOf} />;
}

/** Said once by a screen reader, and not every moment again. */
function Clock({ since }: { since: number }) {
  return (
    <p class="quiet" aria-hidden="true">
      {`${((useNow(true) - since) / 1000).toFixed(1)} s`}
    </p>
  );
}

function Levels({ code, kernel, refOf }: { code: Code; kernel: Kernel; refOf: Props["refOf"] }) {
  const tabs = [
    ...code.levels.map(({ name }) => ({ id: name as string, label: LEVEL_LABELS[name][0] })),
    { id: FACTS, label: code.language === "cpp" ? "Vectors" : "Instructions" },
    ...(code.passes.length > 0 ? [{ id: PASSES, label: "Passes", badge: code.passes.length }] : []),
  ];
  const last = code.levels.at(-1)?.name ?? FACTS;
  const selected = tabs.find(({ id }) => id === levelShown.value)?.id ?? last;
  const level = code.levels.find(({ name }) => name === selected);
  const { source, lines } = textFor(kernel, code.language);
  const writtenFor = report.value?.environment.target || code.target;
  const lineRef = (line: number): string => refOf(code.language, line);
  // What a line is, its ref says: as long as that is the same, nothing is drawn again.
  const sameAs = [code, level, lineRef(1)];
  const ofSource = useMemo(() => originsOfSource(code, lines, lineRef), sameAs);
  const ofLevel = useMemo(() => (level ? originsOfLevel(level, lines, lineRef) : new Map()), sameAs);
  return (
    <>
      <p class="about-facts machine-facts">
        {codeFacts(code).map(({ value, name, hint }) => (
          <span key={name} title={hint}>
            <strong>{value}</strong> {name}
          </span>
        ))}
      </p>
      {code.language === "triton" && writtenFor !== code.target && (
        <p class="note">{`The kernel was written for ${writtenFor}. A kernel for ${code.target} might have other tiles.`}</p>
      )}
      {code.notes.map((note) => (
        <p class="note" key={note}>
          {note}
        </p>
      ))}
      <div class="machine-source" data-pane="machine-source">
        <CodeView label={`Source of ${code.kernel}`} source={source} language={code.language === "cpp" ? "cpp" : "python"} origins={ofSource} />
      </div>
      <div class="machine-level" data-pane="machine-level">
        <Tabs name="level" label={`Levels of ${code.kernel}`} selected={selected} onSelect={(id) => (levelShown.value = id)} tabs={tabs} />
        <TabPanel name="level" selected={selected}>
          {level ? (
            <>
              {level.cut && <p class="note">{level.cut}</p>}
              <CodeView label={`${LEVEL_LABELS[level.name][0]} of ${code.kernel}`} source={level.text} language={LEVEL_LABELS[level.name][1]} origins={ofLevel} />
            </>
          ) : selected === PASSES ? (
            <Passes passes={code.passes} />
          ) : code.language === "cpp" ? (
            <Vectors code={code} lineRef={lineRef} />
          ) : (
            <Instructions code={code} lineRef={lineRef} />
          )}
        </TabPanel>
      </div>
    </>
  );
}

const fromLines = (lines: readonly number[]): string => (lines.length > 0 ? shortList(lines) : "");

function Instructions({ code, lineRef }: { code: Code; lineRef(line: number): string }) {
  const { occupancy } = code;
  return (
    <Scroller label={`Instructions of ${code.kernel}`}>
      <table class="machine-table">
        <caption>Instructions by kind, each counted once as written</caption>
        <tbody>
          {mixOf(code).map(({ kind, count, share }) => (
            <tr key={kind}>
              <th scope="row">{kind}</th>
              <td class="number">{count}</td>
              <td>
                <meter class="machine-meter" min={0} max={1} value={share} aria-label={`${kind}: ${Math.round(100 * share)} %`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {code.accesses.length > 0 && (
        <table class="machine-table">
          <caption>Loads and stores</caption>
          <thead>
            <tr>
              <th scope="col">instruction</th>
              <th scope="col">memory</th>
              <th scope="col">bits a thread</th>
              <th scope="col" class="number">times</th>
              <th scope="col">from lines</th>
            </tr>
          </thead>
          <tbody>
            {accessGroups(code).map((one) => (
              <tr key={one.instruction} data-ref={one.sourceLines.length === 1 ? lineRef(one.sourceLines[0] ?? 0) : undefined}>
                <th scope="row">
                  <code>{one.instruction}</code>
                </th>
                <td>{`${one.space} ${one.isStore ? "store" : "load"}`}</td>
                <td>{one.bits ?? "shared by threads"}</td>
                <td class="number">{one.count}</td>
                <td>{fromLines(one.sourceLines)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {occupancy && (
        <table class="machine-table">
          <caption>{`Occupancy: ${occupancy.warps} of ${occupancy.most_warps} warps on a multiprocessor`}</caption>
          <tbody>
            {occupancy.limits.map(({ by, programs }) => (
              <tr key={by} class={occupancy.limited_by.includes(by) ? "machine-limit" : ""}>
                <th scope="row">{by}</th>
                <td class="number">{programs}</td>
                <td>{`programs${occupancy.limited_by.includes(by) ? ": this is what limits it" : ""}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {occupancy && <p class="note quiet">{`${occupancy.source}.`}</p>}
    </Scroller>
  );
}

function Vectors({ code, lineRef }: { code: Code; lineRef(line: number): string }) {
  return (
    <Scroller label={`Vectors of ${code.kernel}`}>
      <table class="machine-table">
        <caption>Innermost loops of the assembly</caption>
        <thead>
          <tr>
            <th scope="col">lines</th>
            <th scope="col" class="number">on vectors</th>
            <th scope="col" class="number">on one number</th>
            <th scope="col">widest</th>
            <th scope="col">from lines</th>
          </tr>
        </thead>
        <tbody>
          {code.loops.map((loop) => (
            <tr key={loop.first}>
              <th scope="row">{`${loop.first}–${loop.last}`}</th>
              <td class="number">{loop.packed}</td>
              <td class="number">{loop.scalar}</td>
              <td>{loop.bits ? `${loop.bits} bits` : "no vectors"}</td>
              <td>{fromLines(loop.source_lines)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {code.remarks.length > 0 && (
        <table class="machine-table">
          <caption>What the compiler says</caption>
          <tbody>
            {code.remarks.map((one) => (
              <tr key={one.line} data-ref={lineRef(one.line)}>
                <th scope="row">{`line ${one.line}`}</th>
                <td>{one.is_vectorised ? "vectors" : "no vectors"}</td>
                <td>{one.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Scroller>
  );
}

const MARKS: Record<string, string> = { "+": "pass-in", "-": "pass-out", "@": "pass-at" };

function Passes({ passes }: { passes: Pass[] }) {
  return (
    <Scroller label="Passes of Triton that changed the kernel" class="passes">
      {passes.map((one, place) => (
        <details key={place} open={place === 0}>
          <summary>
            <code>{one.name}</code> <span class="quiet">{`${LEVEL_LABELS[one.level][0]}, ${format.count(one.diff.split("\n").filter((line) => /^[+-]/.test(line)).length, "line")}`}</span>
          </summary>
          <pre>
            {one.diff.split("\n").map((line, number) => (
              <span key={number} class={MARKS[line[0] ?? ""] ?? ""}>{`${line}\n`}</span>
            ))}
          </pre>
        </details>
      ))}
    </Scroller>
  );
}

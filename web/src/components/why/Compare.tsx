/**
 * Any two explorations beside each other: what else differs first, then figures, then kernels matched by the nodes that
 * they cover, then the texts. The service matches; the page has both reports for the texts.
 */
import type { Comparison, Figure, KernelMatch, KernelSum } from "../../api";
import * as format from "../../format";
import type { Graph, Report } from "../../report";
import { beside, comparedWith, notBeside } from "../../state";
import { inAddress, text } from "../../view";
import { Head } from "../Head";
import { Name } from "../Name";
import { Empty, Scroller } from "../Scroller";
import { changeOf, kernelsInWords, valueOf } from "./changes";
import { Picker, useReport } from "./Explorations";
import { TextDiff } from "./TextDiff";

/** The pair of kernels whose texts are compared: `graph_0/1:1,2`. */
const textsShown = inAddress<string | null>("diff", null, text);

function FigureRow({ figure }: { figure: Figure }) {
  const cell = `number ${figure.kind}`;
  const from = figure.device ? `${figure.kind} ${figure.kind === "predicted" ? "for" : "on"} ${figure.device}` : figure.kind;
  return (
    <tr>
      <th scope="row">{figure.name}</th>
      <td class={cell}>{changeOf(figure)}</td>
      <td class={cell}>{valueOf(figure, figure.before)}</td>
      <td class={cell}>{valueOf(figure, figure.after)}</td>
      <td class="quiet">{from}</td>
    </tr>
  );
}

function Figures({ figures }: { figures: Figure[] }) {
  return (
    <table class="compare-figures">
      <Head columns={["figure", "change", "the first", "this one", "how it is known"]} numbers={["change", "the first", "this one"]} />
      <tbody>
        {figures
          .filter(({ before, after }) => before !== null || after !== null)
          .map((figure) => (
            <FigureRow key={`${figure.kind} ${figure.name}`} figure={figure} />
          ))}
      </tbody>
    </table>
  );
}

const RELATIONS: Record<KernelMatch["relation"], string> = {
  same: "same nodes",
  split: "split",
  merged: "merged",
  regrouped: "other nodes",
  "only before": "only in the first",
  "only after": "only in this one",
};

function Kernels({ kernels }: { kernels: KernelSum }) {
  return (
    <td>
      {kernels.names.map((name, place) => (
        <div key={place} class="compare-kernel">
          <Name text={name} />
        </div>
      ))}
      {kernels.names.length > 0 && (
        <span class="quiet">
          {format.bytes(kernels.bytes)}
          {kernels.measured_us !== null && `, measured ${format.microseconds(kernels.measured_us)}`}
          {kernels.predicted_us !== null && <em>{`, predicted ${format.microseconds(kernels.predicted_us)}`}</em>}
        </span>
      )}
    </td>
  );
}

const keyOf = ({ graph, before, after }: KernelMatch): string => `${graph}/${before.places.join()}:${after.places.join()}`;

function sourceOf(graph: Graph | undefined, { places }: KernelSum): string {
  return places.map((place) => graph?.kernels[place]?.source ?? "").join("\n");
}

function KernelRow({ match, first, second }: { match: KernelMatch; first: Report | null; second: Report }) {
  const isOpen = textsShown.value === keyOf(match);
  const both = match.before.names.length > 0 && match.after.names.length > 0;
  const find = (whole: Report | null, name: string | null): Graph | undefined => whole?.graphs.find((graph) => graph.name === name);
  return (
    <>
      <tr>
        <th scope="row">
          <span class={`chip relation-${match.relation.replace(" ", "-")}`}>{RELATIONS[match.relation]}</span>
        </th>
        <Kernels kernels={match.before} />
        <Kernels kernels={match.after} />
        <td>
          {both && (
            <button type="button" aria-expanded={isOpen} onClick={() => (textsShown.value = isOpen ? null : keyOf(match))}>
              {isOpen ? "Hide text" : "Text"}
            </button>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={4}>
            {first ? (
              <TextDiff label="Kernel source" before={sourceOf(find(first, match.graph), match.before)} after={sourceOf(find(second, match.graph_after), match.after)} />
            ) : (
              <span class="quiet">Fetching the other exploration.</span>
            )}
          </td>
        </tr>
      )}
    </>
  );
}

function Matches({ found, first, second }: { found: Comparison; first: Report | null; second: Report }) {
  const all = [...found.kernels, ...found.unchanged];
  if (all.length === 0) return null;
  return (
    <table class="compare-kernels">
      <caption>{kernelsInWords(found)}</caption>
      <Head columns={["kernels", "in the first", "in this one", "text"]} />
      <tbody>
        {all.map((match) => (
          <KernelRow key={`${match.relation} ${keyOf(match)}`} match={match} first={first} second={second} />
        ))}
      </tbody>
    </table>
  );
}

/** `buf1 and buf3`, `vertical, batch`, `unset`. */
function optionText(value: unknown): string {
  if (value == null || (Array.isArray(value) && value.length === 0)) return "unset";
  if (!Array.isArray(value)) return format.plain(value);
  return value.map((one) => (Array.isArray(one) ? one.map(format.plain).join(" and ") : format.plain(one))).join(", ");
}

function Options({ found }: { found: Comparison }) {
  if (found.options.length === 0) return null;
  return (
    <p class="note">
      {"Options that differ: "}
      {found.options.map(({ name, before, after }, place) => (
        <span key={name}>
          {place > 0 && ", "}
          <code>{name.replaceAll("_", " ")}</code>
          {` ${optionText(before)} → ${optionText(after)}`}
        </span>
      ))}
    </p>
  );
}

function Both({ found, shown }: { found: Comparison; shown: Report }) {
  const first = useReport(found.before);
  return (
    <div class="comparison">
      {found.differences.map((one) => (
        <p key={one} class="compare-difference" role="note">
          {one}
        </p>
      ))}
      <p class="comparison-verdict" data-testid="comparison-verdict" data-tone={found.is_wrong ? "bad" : undefined}>
        {found.verdict}
      </p>
      <Figures figures={found.figures} />
      <Options found={found} />
      <Matches found={found} first={first} second={shown} />
      {!found.is_same_source && first && <TextDiff label="The snippets" before={first.source} after={shown.source} />}
    </div>
  );
}

export function Compare({ report }: { report: Report }) {
  const found = beside.value?.after === report.id ? beside.value : null;
  const isAsked = comparedWith.value !== null || report.based_on !== null;
  return (
    <Scroller label="Compare" class="compare">
      <Picker shown={report} />
      {found ? <Both found={found} shown={report} /> : <Empty>{notBeside.value ?? (isAsked ? "Comparing." : "Choose an exploration to see beside this one.")}</Empty>}
    </Scroller>
  );
}

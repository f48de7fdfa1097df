import { useMemo } from "preact/hooks";
import * as format from "../../format";
import { graphNameOf } from "../../links";
import type { Graph } from "../../report";
import { pair, pinned, predictedFor, reasonShown, reasons, refs, round } from "../../state";
import { inAddress, oneOf, text } from "../../view";
import { shortList } from "../CodeView";
import { type Column, Table } from "../detail/Table";
import { KernelTag } from "../KernelTag";
import { Layouts } from "../Layouts";
import { Name } from "../Name";
import { Paddings } from "../Paddings";
import { Removed } from "../Removed";
import { Empty, Scroller } from "../Scroller";
import { Worded } from "../Worded";
import { AskWhy } from "./AskWhy";
import { familyOf, filtered, type Row, rowsOf, type Verdict } from "./decisionRows";
import { WITH_GAPS } from "./Numbers";

/** The costliest ones are what most readers come for. */
const ROWS_AT_FIRST = 10;

const verdictShown = inAddress<Verdict>("verdict", "all", oneOf("all", "fused", "refused"));
const familyShown = inAddress<string | null>("family", null, text);
const wordsShown = inAddress<string | null>("words", null, text);

function ask(graph: Graph, { decision }: Row): void {
  pair.value = { graph: graph.name, a: decision.a, b: decision.b };
}

function isAsked(graph: Graph, { decision }: Row): boolean {
  const asked = pair.value;
  return asked !== null && asked.graph === graph.name && asked.a === decision.a && asked.b === decision.b;
}

function columnsOf(graph: Graph): Column<Row>[] {
  const predicted = `By the cost model, for ${predictedFor.value}, ${WITH_GAPS}`;
  return [
    {
      id: "pair",
      head: "nodes",
      by: ({ decision }) => `${decision.a} ${decision.b}`,
      cell: (row) => (
        <button type="button" class="plain decision-pair" aria-label={`Why ${row.decision.a} and ${row.decision.b}`} onClick={() => ask(graph, row)}>
          <Name text={row.decision.a} /> <span class="quiet">+</span> <Name text={row.decision.b} />
        </button>
      ),
    },
    {
      id: "kernels",
      head: "kernels",
      hint: "The kernels that the two ended in",
      by: ({ kernels }) => kernels[0],
      cell: ({ kernels }) => kernels.map((place) => <KernelTag key={place} place={place} />),
    },
    {
      id: "verdict",
      head: "verdict",
      by: ({ decision }) => decision.verdict,
      cell: ({ decision, together }) => (
        <>
          <span class={`verdict-chip ${decision.verdict}`}>{decision.verdict}</span>
          {together.length > 0 && (
            <span class="quiet nowrap" title="The operation between them joined in a later round">
              {" later in "}
              {together.map((place) => (
                <KernelTag key={place} place={place} />
              ))}
            </span>
          )}
        </>
      ),
    },
    {
      id: "stake",
      head: "bytes at stake",
      hint: "Reads and writes that one kernel saves or would save; an upper bound where one kernel is not possible",
      isNumber: true,
      by: ({ stake }) => stake,
      cell: ({ decision, stake }) => stake > 0 && `${decision.verdict === "refused" && decision.score?.fused_us == null ? "≤ " : ""}${format.bytes(stake)}`,
    },
    {
      id: "reason",
      head: "reason",
      by: ({ decision }) => decision.reason,
      cell: (row) => (
        <button
          type="button"
          class="plain reason-name"
          title={reasons.value.get(row.decision.reason)?.sentence}
          onClick={(event) => {
            event.stopPropagation();
            ask(graph, row);
            reasonShown.value = row.decision.reason;
          }}
        >
          <code>{row.decision.reason}</code>
        </button>
      ),
    },
    { id: "because", head: "because", class: "because", cell: ({ decision }) => <Worded text={decision.message} /> },
    { id: "fused", head: "one kernel", hint: predicted, isNumber: true, isPredicted: true, by: ({ decision }) => decision.score?.fused_us, cell: ({ decision }) => format.microseconds(decision.score?.fused_us) },
    { id: "apart", head: "two", hint: predicted, isNumber: true, isPredicted: true, by: ({ decision }) => decision.score?.unfused_us, cell: ({ decision }) => format.microseconds(decision.score?.unfused_us) },
    { id: "round", head: "round", isNumber: true, isExtra: true, by: ({ rounds }) => rounds[0], cell: ({ rounds }) => shortList(rounds) },
    { id: "line", head: "line", isNumber: true, isExtra: true, by: ({ decision }) => decision.lines[0], cell: ({ decision }) => shortList(decision.lines) },
  ];
}

function FilterBar({ graph, rows }: { graph: Graph; rows: Row[] }) {
  const families = useMemo(() => [...new Set(graph.decisions.map(familyOf))].sort(), [graph]);
  const countOf = (which: Verdict): number => (which === "all" ? rows : rows.filter(({ decision }) => decision.verdict === which)).length;
  return (
    <div class="filters">
      <div class="toggle" role="group" aria-label="Verdict">
        {(["all", "refused", "fused"] as const).map((which) => (
          <button type="button" key={which} aria-pressed={verdictShown.value === which} onClick={() => (verdictShown.value = which)}>
            {`${which} ${countOf(which)}`}
          </button>
        ))}
      </div>
      <label class="check">
        reasons
        <select aria-label="Family of reasons" value={familyShown.value ?? ""} onChange={(event) => (familyShown.value = event.currentTarget.value || null)}>
          <option value="">of every family</option>
          {families.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <input type="search" aria-label="Filter decisions" placeholder="node, reason, words" value={wordsShown.value ?? ""} onInput={(event) => (wordsShown.value = event.currentTarget.value || null)} />
      {round.value !== null && (
        <span class="selection-chip">
          {`of round ${round.value} `}
          <button type="button" aria-label="Decisions of all rounds" onClick={() => (round.value = null)}>
            ×
          </button>
        </span>
      )}
      <AskWhy graph={graph} />
    </div>
  );
}

function Others({ graph }: { graph: Graph }) {
  return (
    <>
      {graph.more_decisions.length > 0 && <p class="quiet">{`${format.count(graph.more_decisions.length, "more pair")} ${graph.more_decisions.length === 1 ? "is" : "are"} not listed in full; ask why about any of them.`}</p>}
      <Layouts graph={graph} />
      <Paddings graph={graph} />
      <Removed graph={graph} />
    </>
  );
}

/** Every pair that the scheduler looked at, the costliest refusals first. A row opens the card. */
export function Decisions({ graph }: { graph: Graph }) {
  const rows = useMemo(() => rowsOf(graph), [graph]);
  const shown = filtered(rows, { verdict: verdictShown.value, family: familyShown.value ?? "", words: wordsShown.value ?? "", round: round.value });
  const isOfDecision = pinned.value?.startsWith("decision:") === true && graphNameOf(pinned.value) === graph.name;
  return (
    <div class="decisions">
      {graph.decisions.length > 0 && <FilterBar graph={graph} rows={rows} />}
      <Scroller label="Fusion decisions">
        {graph.decisions.length === 0 ? (
          <Empty>The scheduler had no pair of nodes to look at.</Empty>
        ) : shown.length === 0 ? (
          <Empty>No decision matches.</Empty>
        ) : (
          <Table
            id="decisions"
            label="Decisions of the scheduler"
            rows={shown}
            columns={columnsOf(graph)}
            keyOf={({ index }) => index}
            refOf={({ index }) => refs.value.decision(index)}
            classOf={({ decision }) => decision.verdict}
            onPick={(row) => ask(graph, row)}
            isPicked={(row) => isAsked(graph, row)}
            isUnfiltered={isOfDecision}
            limit={ROWS_AT_FIRST}
            groups={[
              { id: "reason", label: "reason", of: ({ decision }) => decision.reason },
              { id: "kernels", label: "kernels", of: ({ kernels }) => kernels.map((place) => `K${place + 1}`).join(" and ") || "no kernel" },
              { id: "verdict", label: "verdict", of: ({ decision }) => decision.verdict },
              { id: "round", label: "round", of: ({ rounds }) => `round ${rounds[0] ?? ""}` },
            ]}
          />
        )}
        <Others graph={graph} />
      </Scroller>
    </div>
  );
}

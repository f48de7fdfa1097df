import * as format from "../../format";
import { refsOf } from "../../links";
import type { CallErrors, ElementErrors, Graph, OutputErrors, Peer, Report } from "../../report";
import { isWrong } from "../../wrong";
import { Empty, Scroller } from "../Scroller";
import { Name } from "../Name";
import { type Column, Table } from "./Table";

const RULE =
  "Each element is compared with the same computation in float64, on the inputs of the first call. One unit in the last place (ulp) is the distance of two neighbours of the output's dtype at the exact value. Elements that are NaN or infinite must agree, and are left out here.";

interface Measured {
  whose: string;
  of: ElementErrors;
}

type Row = OutputErrors & Measured & { graph: Graph };

interface CallRow {
  call: CallErrors;
  whose: string;
  of: ElementErrors | null;
  problem: string | null;
}

/** Of each result and seed a row for everybody who gave it; who strayed has no figures, and says why. */
export function callRows(peer: Peer | null): CallRow[] {
  return (peer?.errors ?? []).flatMap((call) => call.of.map(({ contestant, errors, problem }) => ({ call, whose: contestant, of: errors, problem })));
}

/** Of each output eager's row, then ours; of every graph, since the figure of the answer is the largest of all. */
function rowsOf(graphs: readonly Graph[]): Row[] {
  return graphs.flatMap((graph) =>
    graph.errors.flatMap((one) => [
      ...(one.eager === null ? [] : [{ ...one, graph, whose: "eager", of: one.eager }]),
      ...(one.compiled === null ? [] : [{ ...one, graph, whose: "compiled", of: one.compiled }]),
    ]),
  );
}

function units(value: number): string {
  return value < 1000 ? String(Number(value.toPrecision(2))) : format.scientific(value);
}

function numbers<R extends { of: ElementErrors | null }>(): Column<R>[] {
  const number = (id: string, head: string, hint: string, of: (errors: ElementErrors) => number, shown: (value: number) => string): Column<R> => ({
    id,
    head,
    hint,
    isNumber: true,
    by: (row) => (row.of === null ? null : of(row.of)),
    cell: (row) => row.of !== null && shown(of(row.of)),
  });
  return [
    number("largest", "largest difference", "The largest absolute difference of an element", (one) => one.largest, format.scientific),
    number("mean", "mean difference", "The mean of all absolute differences", (one) => one.mean, format.scientific),
    number("largest-ulp", "largest, ulp", "In units in the last place", (one) => one.largest_ulp, units),
    number("mean-ulp", "mean, ulp", "In units in the last place", (one) => one.mean_ulp, units),
  ];
}

/** Whole calls beside the other compiler and all others, for several seeds. */
function OfCalls({ peer }: { peer: Peer | null }) {
  const rows = callRows(peer);
  if (rows.length === 0) return peer?.seeds ? <p class="method">{peer.seeds}</p> : null;
  return (
    <>
      <Table
        id="call-errors"
        label="Errors of whole calls against float64, measured"
        rows={rows}
        keyOf={({ call, whose }) => `${call.entry} ${call.output} ${call.seed} ${whose}`}
        columns={[
          { id: "output", head: "of a call", by: ({ call }) => call.output, cell: ({ call }) => `${call.output} of ${call.entry}` },
          { id: "seed", head: "seed", hint: "Of the inputs", isNumber: true, by: ({ call }) => call.seed, cell: ({ call }) => call.seed },
          { id: "whose", head: "of", by: (row) => row.whose, cell: (row) => format.contestant(row.whose) },
          { id: "dtype", head: "dtype", isExtra: true, by: ({ call }) => call.dtype, cell: ({ call }) => call.dtype },
          ...numbers<CallRow>(),
          ...(rows.some((row) => row.problem) ? [{ id: "problem", head: "beyond rounding", cell: (row: CallRow) => row.problem && `It ${row.problem}.` }] : []),
        ]}
      />
      <p class="method">{peer?.seeds}</p>
    </>
  );
}

/** Results of integers and bools: they are equal or not, so they have no row of differences. */
function exactOutputs(graphs: readonly Graph[]): string[] {
  const names = graphs.flatMap(({ aten, errors }) => {
    const given = new Set(aten.find(({ op }) => op === "output")?.args ?? []);
    return aten.flatMap(({ name, dtype }) => (given.has(name) && /^u?int|^bool/.test(dtype ?? "") && !errors.some(({ output }) => output === name) ? [name] : []));
  });
  return [...new Set(names)];
}

const MOST_NAMED = 3;

function withoutRow(names: readonly string[]): string {
  if (names.length === 0) return "";
  const others = names.length - MOST_NAMED;
  const named = [...names.slice(0, MOST_NAMED), ...(others > 0 ? [format.count(others, "other")] : [])];
  const verbs = names.length === 1 ? ["is", "has"] : ["are", "have"];
  return ` ${new Intl.ListFormat("en").format(named)} ${verbs[0]} of this kind and ${verbs[1]} no row.`;
}

/** The figure of the answer bar, which is of whole outputs: one element may be off by far more. */
function OfOutputs({ report }: { report: Report }) {
  const { compiled_error: ours, eager_error: eager, allowed_error: allowed } = report.summary;
  if (ours === null || isWrong(report)) return null;
  const beside = [eager !== null && `eager ${format.scientific(eager)}`, allowed != null && `${format.scientific(allowed)} allowed`].filter(Boolean);
  return (
    <p class="method">
      {`Largest relative error of an output: ${[format.scientific(ours), ...beside].join(", ")}. It is the root mean square of the differences divided by that of the exact values; of integers and bools, the share of elements that differ.${withoutRow(exactOutputs(report.graphs))}`}
    </p>
  );
}

/** How far each output is from float64: the largest and the mean error of an element, of eager, of ours, and of whole
 * calls of everybody. */
export function Errors({ report }: { report: Report }) {
  const { graphs, peer } = report;
  const rows = rowsOf(graphs);
  if (rows.length === 0 && callRows(peer).length === 0) {
    const areExact = report.summary.compiled_error !== null && !isWrong(report) && exactOutputs(graphs).length > 0;
    return areExact ? <OfOutputs report={report} /> : <Empty>No output was compared with float64.</Empty>;
  }
  return (
    <Scroller label="Errors against float64">
      <OfCalls peer={peer} />
      <Table
        id="errors"
        label="Errors of outputs against float64, measured"
        rows={rows}
        keyOf={(row) => `${row.graph.name} ${row.output} ${row.whose}`}
        refOf={(row) => refsOf(row.graph).aten(row.output)}
        columns={[
          ...(graphs.length > 1 ? [{ id: "graph", head: "graph", by: (row: Row) => row.graph.name, cell: (row: Row) => row.graph.name }] : []),
          { id: "output", head: "output", by: (row) => row.output, cell: (row) => <Name text={row.output} /> },
          { id: "whose", head: "of", by: (row) => row.whose, cell: (row) => row.whose },
          { id: "dtype", head: "dtype", isExtra: true, by: (row) => row.dtype, cell: (row) => row.dtype },
          { id: "elements", head: "elements", isNumber: true, isExtra: true, by: (row) => row.elements, cell: (row) => row.elements.toLocaleString("en") },
          ...numbers<Row>(),
        ]}
      />
      <OfOutputs report={report} />
      <p class="method">{RULE}</p>
    </Scroller>
  );
}

import { refs } from "../../state";
import type { ElementErrors, Graph, OutputErrors } from "../../report";
import { Empty, Scroller } from "../Scroller";
import { Name } from "../Name";
import { type Column, Table } from "./Table";

const RULE =
  "Each element is held against the same computation in float64, on the inputs of the first call. One unit in the last place (ulp) is the distance of two neighbours of the output's dtype at the exact value. Elements that are NaN or infinite must agree, and are left out here.";

interface Row extends OutputErrors {
  whose: string;
  of: ElementErrors;
}

/** Of each output eager's row, then ours. */
function rowsOf(graph: Graph): Row[] {
  return graph.errors.flatMap((one) => [
    ...(one.eager === null ? [] : [{ ...one, whose: "eager", of: one.eager }]),
    ...(one.compiled === null ? [] : [{ ...one, whose: "compiled", of: one.compiled }]),
  ]);
}

function figure(value: number): string {
  return value === 0 ? "0" : value.toExponential(1);
}

function units(value: number): string {
  return value < 1000 ? value.toPrecision(2).replace(/\.0$/, "") : value.toExponential(1);
}

function number(id: string, head: string, hint: string, of: (errors: ElementErrors) => number, shown: (value: number) => string): Column<Row> {
  return { id, head, hint, isNumber: true, by: (row) => of(row.of), cell: (row) => shown(of(row.of)) };
}

/** How far each output is from float64: the largest and the mean error of an element, of eager and of ours. */
export function Errors({ graph }: { graph: Graph }) {
  const rows = rowsOf(graph);
  if (rows.length === 0) return <Empty>No output was compared with float64.</Empty>;
  return (
    <Scroller label="Errors against float64">
      <Table
        id="errors"
        label="Errors of outputs against float64, measured"
        rows={rows}
        keyOf={(row) => `${row.output} ${row.whose}`}
        refOf={(row) => refs.value.aten(row.output)}
        columns={[
          { id: "output", head: "output", by: (row) => row.output, cell: (row) => <Name text={row.output} /> },
          { id: "whose", head: "of", by: (row) => row.whose, cell: (row) => row.whose },
          { id: "dtype", head: "dtype", isExtra: true, by: (row) => row.dtype, cell: (row) => row.dtype },
          { id: "elements", head: "elements", isNumber: true, isExtra: true, by: (row) => row.elements, cell: (row) => row.elements.toLocaleString("en") },
          number("largest", "largest error", "The largest difference of an element", (one) => one.largest, figure),
          number("mean", "mean error", "The mean of all differences", (one) => one.mean, figure),
          number("largest-ulp", "largest, ulp", "In units in the last place", (one) => one.largest_ulp, units),
          number("mean-ulp", "mean, ulp", "In units in the last place", (one) => one.mean_ulp, units),
        ]}
      />
      <p class="method">{RULE}</p>
    </Scroller>
  );
}

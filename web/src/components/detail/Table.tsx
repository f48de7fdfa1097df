/**
 * The one table of the page: a head that stays, sorted by a click on it, grouped, and of what is selected.
 *
 *     <Table
 *       id="launches" label="What each kernel moves" rows={launches} keyOf={(one) => one.name}
 *       refOf={(one) => refs.value.loop(one.name)}
 *       columns={[
 *         { id: "name", head: "kernel", cell: (one) => <Name text={one.name} />, by: (one) => one.name },
 *         { id: "bytes", head: "bytes", isNumber: true, cell: (one) => format.bytes(one.bytes), by: (one) => one.bytes },
 *         { id: "lines", head: "line", isExtra: true, cell: (one) => one.lines.join(", ") },
 *       ]}
 *     />
 *
 * The first column names the row. Order, grouping and whether the selection filters are in the address.
 */
import type { ComponentChildren } from "preact";
import * as format from "../../format";
import type { Ref } from "../../links";
import { links, pinned } from "../../state";
import { type Group, grouped, grouping, isOfAll, nameOfRef, ofSelection, orders, type Sortable, sortBy, sorted, whole } from "./rows";

export interface Column<Row> {
  /** Its name in the address; one of a table's. */
  id: string;
  head: string;
  /** More about it, on hover. */
  hint?: string | undefined;
  cell(row: Row): ComponentChildren;
  /** What it is sorted by. Without it the column cannot be sorted. */
  by?(row: Row): Sortable;
  isNumber?: boolean | undefined;
  /** A predicted figure never looks like a measured one. */
  isPredicted?: boolean | undefined;
  /** Left out where the table is narrow: what one can do without. */
  isExtra?: boolean | undefined;
  class?: string | undefined;
}

export interface Grouping<Row> {
  id: string;
  /** What stands behind "by". */
  label: string;
  of(row: Row): string;
}

interface Props<Row> {
  /** Its name in the address: one of the page's. */
  id: string;
  /** What it holds, for whoever does not see it. */
  label: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  keyOf(row: Row, place: number): string | number;
  refOf?(row: Row): Ref | undefined;
  classOf?(row: Row): string;
  hintOf?(row: Row): string | undefined;
  groups?: Grouping<Row>[];
  /** Whether the table is the selection's own already, and is not to be filtered by it. */
  isUnfiltered?: boolean;
  /** What a click on a row does, where that is not to select it. */
  onPick?(row: Row, place: number): void;
  isPicked?(row: Row): boolean;
  /** Rows of the foot. */
  foot?: ComponentChildren;
  /** As wide as its content, not as its place. */
  isCompact?: boolean;
  /** How many rows stand there before one asks for all. */
  limit?: number;
}

/** With more a click on the views with most columns is not answered at once. */
const ROWS_AT_FIRST = 100;

function Head<Row>({ id, columns }: { id: string; columns: Column<Row>[] }) {
  const order = orders.value.get(id);
  return (
    <thead>
      <tr>
        {columns.map((column) => {
          const isSorted = order?.column === column.id;
          const direction = order?.isDescending ? "descending" : "ascending";
          return (
            <th key={column.id} scope="col" class={classOf(column)} title={column.by ? undefined : column.hint} aria-sort={isSorted ? direction : undefined}>
              {column.by ? (
                <button type="button" class="sort" title={column.hint} onClick={() => sortBy(id, column.id, column.isNumber === true)}>
                  {column.head}
                  <span class="sort-mark" aria-hidden="true">
                    {isSorted ? (order.isDescending ? "↓" : "↑") : ""}
                  </span>
                </button>
              ) : (
                column.head
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function classOf<Row>(column: Column<Row>): string {
  return [column.isNumber && "number", column.isPredicted && "predicted", column.isExtra && "extra", column.class].filter(Boolean).join(" ");
}

/** What the rows are of, with a button for all of them. */
export function SelectionChip({ shown, of }: { shown: number; of: number }) {
  const selected = pinned.value;
  if (selected === null || (shown === of && !isOfAll.value)) return null;
  const name = nameOfRef(selected);
  if (isOfAll.value) {
    return (
      <button type="button" class="selection-chip" onClick={() => (isOfAll.value = false)}>
        {`Show only those of ${name}`}
      </button>
    );
  }
  return (
    <span class="selection-chip">
      {`of ${name}: ${shown} of ${of} `}
      <button type="button" aria-label={`Show all ${of}, not only those of ${name}`} onClick={() => (isOfAll.value = true)}>
        ×
      </button>
    </span>
  );
}

function GroupPicker<Row>({ id, groups, picked }: { id: string; groups: Grouping<Row>[]; picked: Grouping<Row> | undefined }) {
  return (
    <label class="group-by">
      {"group by "}
      <select value={picked?.id ?? ""} onChange={(event) => (grouping.value = event.currentTarget.value ? `${id}.${event.currentTarget.value}` : null)}>
        <option value="">nothing</option>
        {groups.map((one) => (
          <option key={one.id} value={one.id}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  );
}

function Rows<Row>({ rows, table }: { rows: readonly Row[]; table: Props<Row> }) {
  const [first, ...others] = table.columns;
  return (
    <>
      {rows.map((row, place) => (
        <tr key={table.keyOf(row, place)} data-ref={table.refOf?.(row)} class={table.classOf?.(row)} title={table.hintOf?.(row)} tabIndex={table.refOf?.(row) && !table.onPick ? 0 : undefined}
          data-no-pin={table.onPick ? true : undefined}
          aria-current={table.isPicked?.(row) || undefined}
          onClick={table.onPick && (() => table.onPick?.(row, place))}
        >
          {first && (
            <th scope="row" class={classOf(first)}>
              {first.cell(row)}
            </th>
          )}
          {others.map((column) => (
            <td key={column.id} class={classOf(column)}>
              {column.cell(row)}
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}

function GroupBody<Row>({ group, table }: { group: Group<Row>; table: Props<Row> }) {
  return (
    <tbody>
      <tr class="group-row">
        <th scope="rowgroup" colSpan={table.columns.length}>
          {group.name || "none"} <span class="quiet">{group.rows.length}</span>
        </th>
      </tr>
      <Rows rows={group.rows} table={table} />
    </tbody>
  );
}

export function Table<Row>(table: Props<Row>) {
  const { id, columns, rows, groups = [], limit: atFirst = ROWS_AT_FIRST } = table;
  const limit = whole.value.has(id) ? Number.POSITIVE_INFINITY : atFirst;
  const refOf = table.refOf ?? (() => undefined);
  const ofSelected = table.isUnfiltered ? rows : ofSelection(rows, refOf, pinned.value, links.value);
  const wanted = isOfAll.value ? rows : ofSelected;
  const order = orders.value.get(id);
  const by = columns.find((column) => column.id === order?.column)?.by;
  const inOrder = order && by ? sorted(wanted, by, order.isDescending) : wanted;
  const shown = inOrder.slice(0, limit);
  const picked = groups.find((one) => grouping.value === `${id}.${one.id}`);
  const canFilter = ofSelected.length < rows.length;
  return (
    <div class={`table ${table.isCompact ? "table-compact" : ""}`} data-filtered={wanted.length < rows.length || undefined}>
      {(canFilter || groups.length > 0) && (
        <div class="table-bar">
          {canFilter && <SelectionChip shown={ofSelected.length} of={rows.length} />}
          {groups.length > 0 && <GroupPicker id={id} groups={groups} picked={picked} />}
        </div>
      )}
      <table>
        <caption class="visually-hidden">{table.label}</caption>
        <Head id={id} columns={columns} />
        {picked ? (
          grouped(shown, picked.of).map((group) => <GroupBody key={group.name} group={group} table={table} />)
        ) : (
          <tbody>
            <Rows rows={shown} table={table} />
          </tbody>
        )}
        {table.foot && <tfoot>{table.foot}</tfoot>}
      </table>
      {inOrder.length > limit && (
        <button type="button" class="show-all" onClick={() => (whole.value = new Set([...whole.value, id]))}>
          {`Show all ${format.count(inOrder.length, "row")}`}
        </button>
      )}
    </div>
  );
}

/** Which rows a table shows, and in which order: no markup, and no signal but those that the address keeps. */
import { signal } from "@preact/signals";
import { graphNameOf, kindOf, type Links, nameIn, numberIn, type Ref } from "../../links";
import { flag, inAddress, text } from "../../view";

export type Sortable = number | string | null | undefined;

export interface Order {
  column: string;
  isDescending: boolean;
}

/** `traffic.bytes-,nodes.name`: for each table that is sorted, its column, with a minus where the largest is first. */
export type Orders = ReadonlyMap<string, Order>;

const NONE: Orders = new Map();

export const orders = inAddress<Orders>("sort", NONE, {
  read: (found) => {
    const parts = [...found.matchAll(/(?:^|,)([\w-]+)\.([\w]+)(-?)(?=,|$)/g)];
    return parts.length > 0 ? new Map(parts.map(([, table = "", column = "", minus]) => [table, { column, isDescending: minus === "-" }])) : null;
  },
  write: (value) => [...value].map(([table, { column, isDescending }]) => `${table}.${column}${isDescending ? "-" : ""}`).join(","),
});

/** `nodes.kernel`: the table that is grouped, and by what. */
export const grouping = inAddress<string | null>("groups", null, text);

/** Whether tables show all rows though something is selected. */
export const isOfAll = inAddress<boolean>("all", false, flag);

/** Tables that show all their rows, by their names, where the reader asked for that. */
export const whole = signal<ReadonlySet<string>>(new Set());

/** A click on a head: first the order that one wants of such a column, then the other one, then as it was. */
export function nextOrder(now: Order | undefined, column: string, isNumber: boolean): Order | null {
  if (now?.column !== column) return { column, isDescending: isNumber };
  return now.isDescending === isNumber ? { column, isDescending: !isNumber } : null;
}

export function sortBy(table: string, column: string, isNumber: boolean): void {
  const next = nextOrder(orders.value.get(table), column, isNumber);
  const changed = new Map([...orders.value].filter(([name]) => name !== table));
  if (next) changed.set(table, next);
  orders.value = changed.size > 0 ? changed : NONE;
}

/** What is not known comes last in either order; equal rows keep their order. */
export function sorted<Row>(rows: readonly Row[], valueOf: (row: Row) => Sortable, isDescending: boolean): Row[] {
  const isMissing = (value: Sortable): boolean => value == null || value === "";
  return rows
    .map((row) => ({ row, value: valueOf(row) }))
    .sort(({ value: one }, { value: other }) => {
      if (isMissing(one) || isMissing(other)) return Number(isMissing(one)) - Number(isMissing(other));
      const order = typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
      return isDescending ? -order : order;
    })
    .map(({ row }) => row);
}

export interface Group<Row> {
  name: string;
  rows: Row[];
}

/** Groups in the order in which they are first met. */
export function grouped<Row>(rows: readonly Row[], nameOf: (row: Row) => string): Group<Row>[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const known = groups.get(nameOf(row));
    if (known) known.push(row);
    else groups.set(nameOf(row), [row]);
  }
  return [...groups].map(([name, members]) => ({ name, rows: members }));
}

/**
 * The rows that belong to what is selected. All of them where none does, and where the selection is a row itself: who
 * picks one in a table does not want the others gone.
 */
export function ofSelection<Row>(rows: readonly Row[], refOf: (row: Row) => Ref | undefined, selected: Ref | null, links: Links): readonly Row[] {
  if (selected === null || rows.some((row) => refOf(row) === selected)) return rows;
  const partners = links.partners(selected);
  const found = rows.filter((row) => partners.has(refOf(row) ?? ""));
  return found.length > 0 ? found : rows;
}

/** `K3`, `line 7`, `mul`. */
export function nameOfRef(item: Ref): string {
  const kind = kindOf(item);
  if (kind === "kernel") return `K${numberIn(item) + 1}`;
  if (kind === "peer") return `the peer's kernel ${numberIn(item) + 1}`;
  if (kind === "line") return `line ${numberIn(item)}`;
  if (kind === "decision") return `decision ${numberIn(item) + 1}`;
  if (kind === "code") return "this line of the kernel";
  if (kind === "edge") return nameIn(item).replace(" ", " → ");
  return graphNameOf(item) === null ? item : nameIn(item);
}

/**
 * What one looks at, as the address says it: selection, round, panes, filters, comparison.
 *
 * Each of these is a signal made by `inAddress`, which gives it a name in the query: `/x/ID?at=kernel:graph_0/3&round=2`.
 * Reading is by the signal; writing it changes the address in place, so that a link restores what its sender saw, an
 * embedded page opens there, and nothing has to be told twice. A value that stands at its default is left out.
 */
import { batch, effect, type Signal, signal } from "@preact/signals";

/** How a value stands in a query. `read` gives null for a text that means nothing: the default then holds. */
export interface Codec<Value> {
  read(text: string): Value | null;
  write(value: Value): string;
}

export const text: Codec<string | null> = { read: (value) => value, write: (value) => value ?? "" };

export const number: Codec<number | null> = {
  read: (value) => (/^\d+$/.test(value) ? Number(value) : null),
  write: (value) => String(value ?? ""),
};

export const flag: Codec<boolean> = { read: (value) => value === "1", write: (value) => (value ? "1" : "0") };

/** One of a few words. */
export function oneOf<Word extends string>(...words: Word[]): Codec<Word> {
  return { read: (value) => words.find((word) => word === value) ?? null, write: (value) => value };
}

interface Field {
  name: string;
  toText(): string | null;
  fromText(value: string | null): void;
}

/** A signal, since a view that is fetched later adds its own while the address is followed. */
const fields = signal<readonly Field[]>([]);
/** Of the query that was read last, what no field has asked for: the address keeps it until one does. */
const unclaimed = new Map<string, string>();

/** A signal that the address keeps under `name`, which no other may have. */
export function inAddress<Value>(name: string, initial: Value, codec: Codec<Value>): Signal<Value> {
  if (fields.peek().some((field) => field.name === name)) throw new Error(`two views want the name ${name} in the address`);
  const read = (found: string | null): Value => (found === null ? initial : (codec.read(found) ?? initial));
  const value = signal(read(unclaimed.get(name) ?? null));
  unclaimed.delete(name);
  const toText = (): string | null => (value.value === initial ? null : codec.write(value.value));
  fields.value = [...fields.peek(), { name, toText, fromText: (found) => (value.value = read(found)) }];
  return value;
}

/** The query that says what is looked at now, with its question mark; empty where all is at its default. */
export function viewQuery(): string {
  const known = fields.value.map(({ name, toText }) => [name, toText()] as const);
  const parts = [...known, ...unclaimed].flatMap(([name, value]) => {
    return value === null ? [] : [`${name}=${encodeURIComponent(value).replace(/%(3A|2F|2C|20)/g, (code) => (code === "%20" ? "+" : decodeURIComponent(code)))}`];
  });
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}

/** Look at what a query says; what it does not name goes back to its default. */
export function lookAt(query: string): void {
  const found = new Map(new URLSearchParams(query));
  batch(() => {
    unclaimed.clear();
    for (const [name, value] of found) unclaimed.set(name, value);
    for (const field of fields.value) {
      field.fromText(found.get(field.name) ?? null);
      unclaimed.delete(field.name);
    }
    // What is unclaimed is no signal: whoever follows the address looks again.
    fields.value = [...fields.value];
  });
}

/** From now on the address follows what is looked at. */
export function followView(): void {
  effect(() => {
    const query = viewQuery();
    if (query !== location.search) history.replaceState(history.state, "", location.pathname + query + location.hash);
  });
}

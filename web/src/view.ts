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

const fields: Field[] = [];

/** A signal that the address keeps under `name`, which no other may have. */
export function inAddress<Value>(name: string, initial: Value, codec: Codec<Value>): Signal<Value> {
  if (fields.some((field) => field.name === name)) throw new Error(`two views want the name ${name} in the address`);
  const value = signal(initial);
  fields.push({
    name,
    toText: () => (value.value === initial ? null : codec.write(value.value)),
    fromText: (found) => (value.value = found === null ? initial : (codec.read(found) ?? initial)),
  });
  return value;
}

/** The query that says what is looked at now, with its question mark; empty where all is at its default. */
export function viewQuery(): string {
  const parts = fields.flatMap(({ name, toText }) => {
    const value = toText();
    return value === null ? [] : [`${name}=${encodeURIComponent(value).replace(/%(3A|2F|2C|20)/g, (code) => (code === "%20" ? "+" : decodeURIComponent(code)))}`];
  });
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}

/** Look at what a query says; what it does not name goes back to its default. */
export function lookAt(query: string): void {
  const found = new URLSearchParams(query);
  batch(() => {
    for (const field of fields) field.fromText(found.get(field.name));
  });
}

/** From now on the address follows what is looked at. */
export function followView(): void {
  effect(() => {
    const query = viewQuery();
    if (query !== location.search) history.replaceState(history.state, "", location.pathname + query + location.hash);
  });
}

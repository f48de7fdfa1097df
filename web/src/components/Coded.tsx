import type { ComponentChildren } from "preact";
import { sentence } from "../format";

/** A sentence of the report, in which code stands between backticks; `plain` shows what is none. */
export function Coded({ text, plain = (part) => part }: { text: string; plain?(part: string): ComponentChildren }) {
  return <>{sentence(text).split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : plain(part)))}</>;
}

import { sentence } from "../format";
import { withTerms } from "./lessons/Term";

/** A sentence of the report, in which code stands between backticks; with `seen`, words of the glossary tell what they mean. */
export function Worded({ text, seen }: { text: string; seen?: Set<string> }) {
  const plain = (part: string) => (seen ? withTerms(part, seen) : part);
  return <>{sentence(text).split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : plain(part)))}</>;
}

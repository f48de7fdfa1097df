import { Coded } from "./Coded";
import { withTerms } from "./lessons/Term";

/** A sentence of the report; with `seen`, words of the glossary tell what they mean. */
export function Worded({ text, seen }: { text: string; seen?: Set<string> }) {
  return <Coded text={text} {...(seen && { plain: (part: string) => withTerms(part, seen) })} />;
}

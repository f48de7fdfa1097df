import type { ComponentChildren } from "preact";
import { withTerms } from "./Term";

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\([^)]*\)/g;

function inline(text: string, seen: Set<string>): ComponentChildren[] {
  const pieces: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, strong, emphasis, link] = match;
    pieces.push(withTerms(text.slice(from, match.index), seen));
    if (code !== undefined) pieces.push(<code key={match.index}>{code}</code>);
    else if (strong !== undefined) pieces.push(<strong key={match.index}>{strong}</strong>);
    else pieces.push(<em key={match.index}>{withTerms(emphasis ?? link ?? "", seen)}</em>);
    from = match.index + whole.length;
  }
  pieces.push(withTerms(text.slice(from), seen));
  return pieces;
}

/** A lesson's Markdown, of which it uses paragraphs, lists, code and emphasis: as elements, never as HTML. */
export function Prose({ text, seen = new Set<string>() }: { text: string; seen?: Set<string> }) {
  return (
    <>
      {text.split(/\n{2,}/).map((block, place) => {
        if (!block.startsWith("- ")) return <p key={place}>{inline(block.replace(/\n/g, " "), seen)}</p>;
        const items = block.slice(2).split(/\n- /);
        return (
          <ul key={place}>
            {items.map((item, number) => (
              <li key={number}>{inline(item.replace(/\n\s*/g, " "), seen)}</li>
            ))}
          </ul>
        );
      })}
    </>
  );
}

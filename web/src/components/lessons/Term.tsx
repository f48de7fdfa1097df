import { useId, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { glossary } from "../../lessons";

/** Words of the glossary that plain English uses as well: to mark them would be noise. */
const COMMON = new Set("x r part program window edge level held fate group unit round tail case chunk score rule team floor report decision tile graph stage loop".split(" "));
const WIDTH = 280;

/** A word with its meaning, which is shown while the pointer or the keyboard is on it. */
export function Term({ word, meaning }: { word: string; meaning: string }) {
  const id = useId();
  const [place, setPlace] = useState<{ left: string; top: string } | null>(null);
  const show = (event: Event): void => {
    const { left, bottom } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    setPlace({ left: `${Math.max(8, Math.min(left, innerWidth - WIDTH - 8))}px`, top: `${bottom + 4}px` });
  };
  const hide = (): void => setPlace(null);
  return (
    <span class="term" role="term" tabIndex={0} aria-describedby={place ? id : undefined} onMouseEnter={show} onMouseLeave={hide} onFocus={show} onBlur={hide}>
      {word}
      {place && (
        <span class="term-meaning" role="tooltip" id={id} style={place}>
          {meaning}
        </span>
      )}
    </span>
  );
}

function meaningOf(word: string): string | null {
  const wanted = word.toLowerCase();
  const found = glossary.value.find(({ words }) => words.some((one) => one.toLowerCase() === wanted || `${one.toLowerCase()}s` === wanted));
  return found?.meaning.replace(/`|\[([^\]]*)\]\([^)]*\)/g, "$1") ?? null;
}

/** Text in which the first occurrence of each term of the glossary is marked; `seen` carries over to the next text. */
export function withTerms(text: string, seen: Set<string> = new Set()): ComponentChildren {
  const words = glossary.value.flatMap((term) => term.words).filter((word) => !COMMON.has(word) && /^[\w -]{2,}$/.test(word));
  if (words.length === 0) return text;
  const pattern = new RegExp(`\\b(${words.sort((one, other) => other.length - one.length).join("|")})s?\\b`, "gi");
  const pieces: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const [word] = match;
    const meaning = meaningOf(word);
    if (meaning === null || seen.has(meaning)) continue;
    seen.add(meaning);
    pieces.push(text.slice(from, match.index), <Term key={match.index} word={word} meaning={meaning} />);
    from = match.index + word.length;
  }
  pieces.push(text.slice(from));
  return pieces;
}

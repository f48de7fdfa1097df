import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { highlight } from "../api";
import { onlySpans } from "../sanitise";
import { say } from "../state";
import { copyText } from "./copy";

export interface LineOrigin {
  ref: string;
  /** The user's lines that this line comes from. */
  userLines: number[];
  /** Of a level below the kernel's source: the line of that. */
  from?: number;
}

interface Props {
  label: string;
  source: string;
  language: string;
  origins?: ReadonlyMap<number, LineOrigin>;
}

const highlighted = new Map<string, Promise<string[] | null>>();

/** Null where the server could not: the text is then shown plain. Not yet reduced to spans. */
function highlightedLines(source: string, language: string): Promise<string[] | null> {
  const key = `${language}\n${source}`;
  let lines = highlighted.get(key);
  if (!lines) {
    lines = highlight(source, language).then(
      (answer) => answer.lines,
      () => null,
    );
    highlighted.set(key, lines);
    if (highlighted.size > 60) highlighted.delete(highlighted.keys().next().value ?? key);
  }
  return lines;
}

interface LineProps {
  number: number;
  text: string;
  html: string | undefined;
  origin: LineOrigin | undefined;
  hasOrigins: boolean;
}

/** `9, 10, 11, 14` as `9–11,14`. */
export function shortList(lines: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const line of [...lines].sort((one, other) => one - other)) {
    const last = parts.at(-1);
    if (last && line <= last[1] + 1) last[1] = line;
    else parts.push([line, line]);
  }
  return parts.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(",");
}

function titleOf(origin: LineOrigin | undefined, from: string | undefined): string | undefined {
  const parts = [...(origin?.from ? [`line ${origin.from} of the kernel`] : []), ...(from ? [`your line ${from}`] : [])];
  return parts.length > 0 ? `from ${parts.join(", ")}` : undefined;
}

function Line({ number, text, html, origin, hasOrigins }: LineProps) {
  const from = origin && shortList(origin.userLines);
  return (
    <div class="code-line" data-ref={origin?.ref} title={titleOf(origin, from)}>
      <span class="code-number" data-number={number} />
      {hasOrigins && <span class="code-origin" data-text={from ?? ""} aria-hidden="true" />}
      {html === undefined ? <span class="code-text">{text}</span> : <span class="code-text" dangerouslySetInnerHTML={{ __html: onlySpans(html) }} />}
    </div>
  );
}

/** Lines that are drawn in one go: a level of a kernel may have thousands, and the page answers between the pieces. */
const PIECE = 250;

/** How many of so many pieces are drawn, for the same `of`: one more in each frame. */
function usePieces(all: number, of: unknown): number {
  const [drawn, setDrawn] = useState({ of, count: 1 });
  const count = drawn.of === of ? drawn.count : 1;
  useEffect(() => {
    if (count >= all) return undefined;
    const timer = requestAnimationFrame(() => setDrawn({ of, count: count + 1 }));
    return () => cancelAnimationFrame(timer);
  }, [all, of, count]);
  return Math.min(count, all);
}

interface Piece {
  /** What it was drawn of: as long as that is the same, so is what was drawn. */
  of: readonly unknown[];
  node: VNode;
}

export function CodeView({ label, source, language, origins }: Props) {
  const [html, setHtml] = useState<{ of: string; lines: string[] } | null>(null);
  const pieces = useRef<Piece[]>([]);
  useEffect(() => {
    let isWanted = true;
    void highlightedLines(source, language).then((lines) => isWanted && lines && setHtml({ of: source, lines }));
    return () => {
      isWanted = false;
    };
  }, [source, language]);
  const hasOrigins = (origins?.size ?? 0) > 0;
  const lines = source.replace(/\n$/, "").split("\n");
  const coloured = html?.of === source ? html : null;
  const all = Math.ceil(lines.length / PIECE);
  const drawn = usePieces(all, source);
  const withColour = usePieces(all, coloured);
  const copy = (): void => void copyText(source).then((copied) => say(copied ? "Copied" : "Could not copy"));
  const piece = (place: number): VNode => {
    const found = place < withColour ? coloured : null;
    const of = [source, found, origins];
    const known = pieces.current[place];
    if (known?.of.every((part, index) => part === of[index])) return known.node;
    const first = place * PIECE;
    const node = (
      <div key={place}>
        {lines.slice(first, first + PIECE).map((text, index) => (
          <Line key={index} number={first + index + 1} text={text} html={found?.lines[first + index]} origin={origins?.get(first + index + 1)} hasOrigins={hasOrigins} />
        ))}
      </div>
    );
    pieces.current[place] = { of, node };
    return node;
  };
  return (
    <div class="code">
      <button type="button" class="copy" onClick={copy} aria-label={`Copy ${label}`}>
        Copy
      </button>
      <div class="scroller code-lines highlight" role="region" aria-label={label} tabIndex={0} data-scroller>
        {Array.from({ length: drawn }, (_, place) => piece(place))}
      </div>
    </div>
  );
}

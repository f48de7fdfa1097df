import { useMemo } from "preact/hooks";
import * as format from "../../format";
import type { Ref } from "../../links";
import { type DiffLine, hunks, lineDiff } from "./lineDiff";

const SIGNS: Record<DiffLine["kind"], string> = { same: " ", removed: "−", added: "+" };
const WORDS: Record<DiffLine["kind"], string> = { same: "", removed: "removed: ", added: "added: " };

interface Compared {
  label: string;
  before: string;
  after: string;
  /** What each line of a text stands for, where it stands for something. */
  refsBefore?: readonly Ref[];
  refsAfter?: readonly Ref[];
}

/** What differs between two texts, line by line. */
export function TextDiff({ label, before, after, refsBefore = [], refsAfter = [] }: Compared) {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  const [removed, added] = (["removed", "added"] as const).map((kind) => lines.filter((line) => line.kind === kind).length);
  const refOf = (line: DiffLine): Ref | undefined => (line.after === null ? refsBefore[(line.before ?? 0) - 1] : refsAfter[line.after - 1]);
  if (!removed && !added) return <p class="quiet">{`${label}: both are the same.`}</p>;
  return (
    <figure class="text-diff">
      <figcaption>{`${label}: ${format.count(removed, "line")} removed, ${added} added`}</figcaption>
      <div class="text-diff-lines" role="region" aria-label={label} tabIndex={0}>
        {hunks(lines).map((hunk, place) =>
          hunk.kind === "skipped" ? (
            <div key={place} class="text-diff-skipped">{`${format.count(hunk.count, "equal line")}`}</div>
          ) : (
            hunk.lines.map((line, number) => (
              <div key={`${place} ${number}`} class={`text-diff-line ${line.kind}`} data-ref={refOf(line)}>
                <span class="text-diff-number">{line.before ?? ""}</span>
                <span class="text-diff-number">{line.after ?? ""}</span>
                <span aria-hidden="true">{SIGNS[line.kind]}</span>
                <code>
                  {WORDS[line.kind] && <span class="visually-hidden">{WORDS[line.kind]}</span>}
                  {line.text}
                </code>
              </div>
            ))
          ),
        )}
      </div>
    </figure>
  );
}

/** Code that is copied out of Markdown often brings its fences along, which are no Python. */
import { isolateHistory } from "@codemirror/commands";
import { EditorView, type ViewUpdate } from "@codemirror/view";

const OPENING = /^\s*(`{3,}|~{3,})([^\n]*)\n/;

/** Where the code stands in a text that is one fenced block of Markdown and nothing else; null for any other text. */
export function insideFences(text: string): { from: number; to: number } | null {
  const [opening, fence, info] = OPENING.exec(text) ?? [];
  if (!opening || !fence || (fence.startsWith("`") && info?.includes("`"))) return null;
  // The first line that closes the block ends it. Where more follows, the text is more than one block.
  const closing = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}[ \\t]*$`, "m").exec(text.slice(opening.length));
  const to = opening.length + (closing?.index ?? 0);
  return closing && text.slice(to + closing[0].length).trim() === "" ? { from: opening.length, to } : null;
}

/** Takes the fences off in a change of its own, so that one step back gives what was pasted. */
function takeOffFences({ transactions, view }: ViewUpdate): void {
  const [pasted] = transactions;
  if (transactions.length !== 1 || !pasted?.isUserEvent("input.paste")) return;
  const fences: { from: number; to: number }[] = [];
  pasted.changes.iterChanges((_fromBefore, _toBefore, from, to, inserted) => {
    const code = insideFences(inserted.toString());
    if (code) fences.push({ from, to: from + code.from }, { from: from + code.to, to });
  });
  if (fences.length > 0) view.dispatch({ changes: fences, annotations: isolateHistory.of("full") });
}

export const takesOffFences = EditorView.updateListener.of(takeOffFences);

/** The editor with what the report says of its lines. Loaded apart from the page: it is the largest part of it. */
import { effect } from "@preact/signals";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { paneUnderPointer, togglePin } from "../lighting";
import { hiddenNow } from "../lessons";
import { kindOf, numberIn, ref } from "../links";
import type { Report } from "../report";
import { focusOfLight, graph, hovered, isEdited, linesSpokenOf, links, lit, refs, report, shownReport, source } from "../state";
import { typed } from "../typing";
import { type LineMarks, type LineMessage, NO_MARKS, reportMarks, setMarks } from "./decorations";
import { takesOffFences } from "./fences";
import { editorSetup } from "./setup";

/** Advice can be long; in the editor it must not push the code away. The tab of breaks has it whole. */
function firstSentence(text: string): string {
  const [sentence = ""] = text.split(/(?<=[.!?])\s+(?=[A-Z])|\n/);
  return sentence.length > 160 ? `${sentence.slice(0, 157)}…` : sentence;
}

/** One message for all recompilations that came of one thing: "compiled 3 more times: k was 3, 6, -3". */
function recompilationsOf(shown: Report): LineMessage[] {
  const found = new Map<string, { line: number; subject: string; values: string[] }>();
  for (const { line, subject, reason, actual } of shown.graphs.flatMap((one) => one.recompiles)) {
    if (line === null) continue;
    const what = actual !== null && subject !== null ? subject : reason;
    const known = found.get(`${line} ${what}`) ?? { line, subject: what, values: [] };
    if (what === subject) known.values.push(actual ?? "");
    found.set(`${line} ${what}`, known);
  }
  return [...found.values()].map(({ line, subject, values }) => {
    const often = values.length > 1 ? `compiled ${values.length} more times` : "compiled again";
    return { line, kind: "note", text: `${often}: ${subject}${values.length > 0 ? ` was ${values.join(", ")}` : ""}` };
  });
}

function messagesOf(shown: Report): LineMessage[] {
  const messages: LineMessage[] = [];
  const { error } = shown;
  if (error?.line != null) messages.push({ line: error.line, kind: "error", text: `${error.type}: ${error.message.split("\n")[0]}` });
  for (const { line, title, reason, remedy, hint } of shown.breaks) {
    const advice = firstSentence(remedy || hint || "");
    if (line !== null) messages.push({ line, kind: "break", text: `graph break: ${title || reason}${advice ? `\n${advice}` : ""}` });
  }
  messages.push(...recompilationsOf(shown));
  for (const note of shown.notes) if (note.line !== null) messages.push({ line: note.line, kind: "note", text: note.message });
  return messages;
}

function marksNow(): LineMarks {
  const now = report.value;
  const shown = now && (now.error || now.graphs.length > 0) ? now : shownReport.value;
  if (!shown || isEdited.value || hiddenNow.value !== "nothing" || shown.source !== source.value) return NO_MARKS;
  const lines = [...lit.value].filter((item) => kindOf(item) === "line").map(numberIn);
  const kernels = new Map<number, number[]>();
  (shown === shownReport.value ? graph.value : null)?.kernels.forEach((_kernel, place) => {
    for (const line of links.value.numbersOf(refs.value.kernel(place), "line")) {
      kernels.set(line, [...(kernels.get(line) ?? []), place]);
    }
  });
  return { lit: new Set(lines), messages: messagesOf(shown), kernels };
}

function lineUnder(view: EditorView, event: MouseEvent): number | null {
  const position = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
  return view.coordsAtPos(position) ? view.state.doc.lineAt(position).number : null;
}

/** A line that no part of the report speaks of lights nothing. */
function lineRef(line: number | null): string | null {
  if (line === null || isEdited.value || shownReport.value?.source !== source.value) return null;
  return links.value.partners(ref.line(line)).size > 0 || linesSpokenOf.value.has(line) ? ref.line(line) : null;
}

function createView(host: HTMLElement): EditorView {
  // In a shadow root CodeMirror uses constructed style sheets, which need no 'unsafe-inline' in the page's policy.
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const state = EditorState.create({
    doc: source.peek(),
    extensions: [
      editorSetup,
      reportMarks,
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        const text = update.state.doc.toString();
        if (text === source.peek()) return;
        source.value = text;
        typed();
      }),
      // Behind the listener above, which would else take the text with its fences for the newer one.
      takesOffFences,
      EditorView.domEventHandlers({
        mousemove: (event, view) => {
          hovered.value = lineRef(lineUnder(view, event));
        },
        click: (event, view) => {
          const line = lineRef(lineUnder(view, event));
          if (line && view.state.selection.main.empty) togglePin(line);
        },
      }),
    ],
  });
  return new EditorView({ state, parent: root, root });
}

/** Whoever had selected all of the old text, or stood in an empty editor, is about to write in its place: what comes
 * meanwhile is selected as well, so that a paste never ends up in front of it. */
function showText(view: EditorView, text: string): void {
  if (view.state.doc.toString() === text) return;
  const { doc, selection } = view.state;
  const insert = view.state.toText(text);
  const isAllSelected = view.hasFocus && selection.main.from === 0 && selection.main.to === doc.length;
  view.dispatch({
    changes: { from: 0, to: doc.length, insert },
    ...(isAllSelected && { selection: { anchor: 0, head: insert.length } }),
  });
}

function scrollToLit(view: EditorView, marks: LineMarks): void {
  const [line] = [...marks.lit].sort((one, other) => one - other);
  if (line === undefined || line > view.state.doc.lines || paneUnderPointer === "editor") return;
  view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(line).from, { y: "nearest", yMargin: 40 }) });
}

/** Puts the editor into `host`; the answer takes it out again. */
export function mountEditor(host: HTMLElement): () => void {
  const view = createView(host);
  const stops = [
    effect(() => showText(view, source.value)),
    effect(() => {
      const marks = marksNow();
      view.dispatch({ effects: setMarks.of(marks) });
      if (focusOfLight.value !== null) scrollToLit(view, marks);
    }),
  ];
  return () => {
    for (const stop of stops) stop();
    view.destroy();
  };
}

/** Takes the keyboard into the editor of `host`. */
export function focusEditor(host: HTMLElement): void {
  host.shadowRoot?.querySelector<HTMLElement>(".cm-content")?.focus();
}

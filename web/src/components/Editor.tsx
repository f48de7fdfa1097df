import { effect } from "@preact/signals";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "preact/hooks";
import { type LineMarks, type LineMessage, NO_MARKS, reportMarks, setMarks } from "../editor/decorations";
import { editorSetup } from "../editor/setup";
import { paneUnderPointer, togglePin } from "../lighting";
import { kindOf, numberIn, ref } from "../links";
import type { Report } from "../report";
import { focusOfLight, graph, hovered, isEdited, linesSpokenOf, links, lit, refs, report, source } from "../state";

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
    return { line, kind: "note", text: `${often}: ${subject}${values.length > 0 ? ` was ${values.join(", ")}` : ""}`.replaceAll("`", "") };
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
  const shown = report.value;
  if (!shown || isEdited.value || shown.source !== source.value) return NO_MARKS;
  const lines = [...lit.value].filter((item) => kindOf(item) === "line").map(numberIn);
  const kernels = new Map<number, number[]>();
  graph.value?.kernels.forEach((_kernel, place) => {
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
  if (line === null || isEdited.value) return null;
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
        if (update.docChanged) source.value = update.state.doc.toString();
      }),
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

function showText(view: EditorView, text: string): void {
  if (view.state.doc.toString() === text) return;
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

function scrollToLit(view: EditorView, marks: LineMarks): void {
  const [line] = [...marks.lit].sort((one, other) => one - other);
  if (line === undefined || line > view.state.doc.lines || paneUnderPointer === "editor") return;
  view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(line).from, { y: "nearest", yMargin: 40 }) });
}

export function Editor() {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current) return undefined;
    const view = createView(host.current);
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
  }, []);
  return <div class="editor" ref={host} data-own-hover />;
}

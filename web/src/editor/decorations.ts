/** What the report puts into the editor: lit lines, a bar for each kernel of a line, and messages under lines. */
import { RangeSet, StateEffect, StateField, type EditorState, type Extension, type Range } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, GutterMarker, gutter, WidgetType } from "@codemirror/view";

export interface LineMessage {
  line: number;
  kind: "error" | "break" | "note";
  text: string;
}

export interface LineMarks {
  /** 1-based lines that are lit now. */
  lit: ReadonlySet<number>;
  messages: LineMessage[];
  /** Places of the kernels that each line ends in. */
  kernels: ReadonlyMap<number, number[]>;
}

export const NO_MARKS: LineMarks = { lit: new Set(), messages: [], kernels: new Map() };

export const setMarks = StateEffect.define<LineMarks>();

/** In a sentence of the report code stands between backticks; an error is in the words of others. */
function parts({ kind, text }: LineMessage): (Node | string)[] {
  if (kind === "error") return [text];
  return text.split("`").map((part, place) => {
    if (place % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}

class MessageWidget extends WidgetType {
  constructor(readonly message: LineMessage) {
    super();
  }

  override eq(other: MessageWidget): boolean {
    return other.message.text === this.message.text && other.message.kind === this.message.kind;
  }

  override toDOM(): HTMLElement {
    // The editor measures this element without its margins: the space around the message is the frame's padding.
    const frame = document.createElement("div");
    frame.className = "line-message-frame";
    const message = document.createElement("div");
    message.className = `line-message line-message-${this.message.kind}`;
    message.append(...parts(this.message));
    frame.append(message);
    return frame;
  }
}

class KernelMarker extends GutterMarker {
  constructor(readonly places: number[]) {
    super();
  }

  override eq(other: KernelMarker): boolean {
    return other.places.join() === this.places.join();
  }

  override toDOM(): HTMLElement {
    const element = document.createElement("span");
    element.className = "kernel-bars";
    element.title = `in ${this.places.map((place) => `K${place + 1}`).join(", ")}`;
    for (const place of this.places.slice(0, 4)) {
      const bar = document.createElement("i");
      bar.className = `kernel-${place % 8}`;
      element.append(bar);
    }
    return element;
  }
}

function decorate(marks: LineMarks, state: EditorState): DecorationSet {
  const ranges: Range<Decoration>[] = [];
  const isLine = (line: number): boolean => line >= 1 && line <= state.doc.lines;
  for (const line of marks.lit) {
    if (isLine(line)) ranges.push(Decoration.line({ class: "lit-line" }).range(state.doc.line(line).from));
  }
  for (const message of marks.messages) {
    if (!isLine(message.line)) continue;
    const { from, to } = state.doc.line(message.line);
    if (message.kind !== "note") ranges.push(Decoration.line({ class: `${message.kind}-line` }).range(from));
    ranges.push(Decoration.widget({ widget: new MessageWidget(message), block: true, side: 1 }).range(to));
  }
  return Decoration.set(ranges, true);
}

interface Marked {
  marks: LineMarks;
  decorations: DecorationSet;
}

const marked = StateField.define<Marked>({
  create: () => ({ marks: NO_MARKS, decorations: Decoration.none }),
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(setMarks)) return { marks: effect.value, decorations: decorate(effect.value, transaction.state) };
    }
    return transaction.docChanged ? { ...value, decorations: value.decorations.map(transaction.changes) } : value;
  },
  provide: (field) => EditorView.decorations.from(field, (value) => value.decorations),
});

const kernelGutter = gutter({
  class: "cm-kernel-gutter",
  markers(view) {
    const { marks } = view.state.field(marked);
    const lines = [...marks.kernels.entries()].filter(([line]) => line >= 1 && line <= view.state.doc.lines);
    return RangeSet.of(
      lines.map(([line, places]) => new KernelMarker(places).range(view.state.doc.line(line).from)),
      true,
    );
  },
  lineMarkerChange: (update) => update.transactions.some((one) => one.effects.some((effect) => effect.is(setMarks))),
});

export const reportMarks: Extension = [marked, kernelGutter];

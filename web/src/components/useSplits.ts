import { useEffect } from "preact/hooks";
import Split from "split.js";

const STORED = "fusionscope.panes";

interface Sizes {
  columns: number[];
  rows: number[];
}

const INITIAL: Sizes = { columns: [32, 31, 37], rows: [68, 32] };
const STEP_PERCENT = 2;

function stored(): Sizes {
  try {
    const found = JSON.parse(localStorage.getItem(STORED) ?? "null") as Sizes | null;
    if (found?.columns.length === 3 && found.rows.length === 2) return found;
  } catch {
    // Someone else's value: start afresh.
  }
  return INITIAL;
}

/** A separator that the keyboard moves too, as ARIA describes it. */
function gutter(names: string[]): (index: number, direction: "horizontal" | "vertical") => HTMLElement {
  return (index, direction) => {
    const element = document.createElement("div");
    element.className = `gutter gutter-${direction}`;
    element.setAttribute("role", "separator");
    element.setAttribute("aria-orientation", direction === "horizontal" ? "vertical" : "horizontal");
    element.setAttribute("aria-label", `Resize ${names[index - 1] ?? "pane"}`);
    element.tabIndex = 0;
    return element;
  };
}

function makeSplit(ids: string[], direction: "horizontal" | "vertical", names: string[], sizes: number[], save: (sizes: number[]) => void): Split.Instance {
  const parent = document.querySelector(ids[0] ?? "")?.parentElement;
  const split = Split(ids, {
    sizes,
    direction,
    minSize: direction === "horizontal" ? 220 : 110,
    gutterSize: 7,
    gutter: gutter(names),
    elementStyle: (_dimension, size, gutterSize) => ({ "flex-basis": `calc(${size}% - ${gutterSize}px)` }),
    gutterStyle: (_dimension, gutterSize) => ({ "flex-basis": `${gutterSize}px` }),
    onDrag: () => describe(),
    onDragEnd: save,
  });
  const separators = [...(parent?.children ?? [])].filter((child): child is HTMLElement => child.classList.contains("gutter"));
  function describe(): void {
    const now = split.getSizes();
    separators.forEach((separator, index) => separator.setAttribute("aria-valuenow", String(Math.round(now[index] ?? 0))));
  }
  separators.forEach((separator, index) => {
    separator.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -STEP_PERCENT, ArrowUp: -STEP_PERCENT, ArrowRight: STEP_PERCENT, ArrowDown: STEP_PERCENT }[event.key];
      const now = split.getSizes();
      const [before, after] = [now[index], now[index + 1]];
      if (step === undefined || before === undefined || after === undefined) return;
      if (before + step < 10 || after - step < 10) return;
      event.preventDefault();
      now[index] = before + step;
      now[index + 1] = after - step;
      split.setSizes(now);
      describe();
      save(now);
    });
    separator.addEventListener("dblclick", () => {
      split.setSizes(direction === "horizontal" ? INITIAL.columns : INITIAL.rows);
      describe();
    });
  });
  describe();
  return split;
}

export function useSplits(): void {
  useEffect(() => {
    const sizes = stored();
    const save = (changed: Partial<Sizes>): void => {
      Object.assign(sizes, changed);
      localStorage.setItem(STORED, JSON.stringify(sizes));
    };
    const columns = makeSplit(["#pane-editor", "#pane-centre", "#pane-kernels"], "horizontal", ["editor", "graph"], sizes.columns, (now) => save({ columns: now }));
    const rows = makeSplit(["#top-row", "#pane-bottom"], "vertical", ["upper panes"], sizes.rows, (now) => save({ rows: now }));
    return () => {
      columns.destroy();
      rows.destroy();
    };
  }, []);
}

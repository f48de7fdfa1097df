import { useLayoutEffect } from "preact/hooks";
import Split from "split.js";

/** A pane that is resized: its element, its name for a screen reader, and its share in percent at first; null: the rest. */
export interface SplitPane {
  id: string;
  name: string;
  share: number | null;
}

type Direction = "horizontal" | "vertical";

const STORED = "fusionscope.shares";
const STEP_PERCENT = 2;
const GUTTER_PIXELS = 8;
const SMALLEST_PERCENT = 10;

function storedShares(): Record<string, number> {
  try {
    const found = JSON.parse(localStorage.getItem(STORED) ?? "{}") as Record<string, unknown>;
    const sound = Object.entries(found).filter(([, share]) => typeof share === "number" && share >= SMALLEST_PERCENT && share <= 80);
    return Object.fromEntries(sound) as Record<string, number>;
  } catch {
    // Someone else's value: start afresh.
    return {};
  }
}

function store(panes: readonly SplitPane[], sizes: number[]): void {
  const shares = storedShares();
  panes.forEach(({ id, share }, place) => {
    if (share !== null) shares[id] = sizes[place] ?? share;
  });
  localStorage.setItem(STORED, JSON.stringify(shares));
}

function sharesOf(panes: readonly SplitPane[], known: Record<string, number>): number[] {
  const sizes = panes.map(({ id, share }) => (share === null ? 0 : (known[id] ?? share)));
  const rest = 100 - sizes.reduce((sum, size) => sum + size, 0);
  return rest < SMALLEST_PERCENT ? sharesOf(panes, {}) : sizes.map((size, place) => (panes[place]?.share === null ? rest : size));
}

/** A separator that the keyboard moves too, as ARIA describes it. */
function gutter(name: string, direction: Direction): HTMLElement {
  const element = document.createElement("div");
  element.className = `gutter gutter-${direction}`;
  element.setAttribute("role", "separator");
  element.setAttribute("aria-orientation", direction === "horizontal" ? "vertical" : "horizontal");
  element.setAttribute("aria-label", `Resize ${name}`);
  element.tabIndex = 0;
  return element;
}

function makeSplit(direction: Direction, panes: readonly SplitPane[]): Split.Instance {
  const gutters: HTMLElement[] = [];
  const split = Split(
    panes.map(({ id }) => `#${id}`),
    {
      sizes: sharesOf(panes, storedShares()),
      direction,
      minSize: direction === "horizontal" ? 220 : 110,
      gutterSize: GUTTER_PIXELS,
      gutter: (index) => {
        const [before, after] = [panes[index - 1], panes[index]];
        const made = gutter((before?.share === null ? after : before)?.name ?? "pane", direction);
        gutters.push(made);
        return made;
      },
      elementStyle: (_dimension, size, gutterSize) => ({ "flex-basis": `calc(${size}% - ${gutterSize}px)` }),
      gutterStyle: (_dimension, gutterSize) => ({ "flex-basis": `${gutterSize}px` }),
      onDrag: () => describe(),
      onDragEnd: (sizes) => store(panes, sizes),
    },
  );
  const describe = (): void => {
    const now = split.getSizes();
    gutters.forEach((separator, index) => separator.setAttribute("aria-valuenow", String(Math.round(now[index] ?? 0))));
  };
  const resize = (sizes: number[]): void => {
    split.setSizes(sizes);
    describe();
    store(panes, sizes);
  };
  gutters.forEach((separator, index) => {
    separator.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -STEP_PERCENT, ArrowUp: -STEP_PERCENT, ArrowRight: STEP_PERCENT, ArrowDown: STEP_PERCENT }[event.key];
      const now = split.getSizes();
      const [before, after] = [now[index], now[index + 1]];
      if (step === undefined || before === undefined || after === undefined) return;
      if (before + step < SMALLEST_PERCENT || after - step < SMALLEST_PERCENT) return;
      event.preventDefault();
      now[index] = before + step;
      now[index + 1] = after - step;
      resize(now);
    });
    separator.addEventListener("dblclick", () => resize(sharesOf(panes, {})));
  });
  describe();
  return split;
}

/** Separators between these panes while they are there; what the reader makes of their sizes is remembered. */
export function useSplit(direction: Direction, panes: readonly SplitPane[]): void {
  useLayoutEffect(() => {
    if (panes.length < 2) return undefined;
    const split = makeSplit(direction, panes);
    return () => split.destroy();
  }, [direction, panes.map(({ id }) => id).join()]);
}

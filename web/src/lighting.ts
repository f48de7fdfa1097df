/**
 * One mechanism lights partners in every pane: a view marks what it shows with `data-ref`, and nothing more.
 *
 * The pointer (or the keyboard's focus) on a marked element says what is looked at; every marked element whose ref is a
 * partner gets `data-lit`. Elements that appear later are painted as they appear.
 */
import { effect } from "@preact/signals";
import { graphNameOf, kindOf, numberIn } from "./links";
import { compilerShown, focusOfLight, graphIndex, hovered, isEdited, kernelPicked, links, lit, pinned, report, shownGraph } from "./state";

const SCROLL_AFTER_MS = 260;

/** The pane under the pointer is never scrolled by us. */
export let paneUnderPointer: string | null = null;

export function togglePin(item: string): void {
  pinned.value = pinned.value === item ? null : item;
}

function paint(root: ParentNode): void {
  const now = lit.value;
  const focus = focusOfLight.value;
  for (const element of root.querySelectorAll<HTMLElement | SVGElement>("[data-ref]")) {
    const item = element.dataset.ref ?? "";
    if (!now.has(item)) delete element.dataset.lit;
    else element.dataset.lit = item === focus ? "focus" : "partner";
  }
}

function scrollPartnersIntoView(root: ParentNode): void {
  for (const scroller of root.querySelectorAll<HTMLElement>("[data-scroller]")) {
    if (scroller.closest<HTMLElement>("[data-pane]")?.dataset.pane === paneUnderPointer) continue;
    const partners = [...scroller.querySelectorAll<HTMLElement>("[data-lit]")];
    const view = scroller.getBoundingClientRect();
    const isVisible = (element: HTMLElement): boolean => {
      const box = element.getBoundingClientRect();
      return box.top >= view.top && box.bottom <= view.bottom;
    };
    const [first] = partners;
    if (!first || partners.some(isVisible)) continue;
    const box = first.getBoundingClientRect();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    scroller.scrollTo({
      top: scroller.scrollTop + box.top - view.top - (view.height - box.height) / 2,
      behavior: calm ? "auto" : "smooth",
    });
  }
}

function refUnder(target: EventTarget | null): string | null {
  return target instanceof Element ? (target.closest<HTMLElement>("[data-ref]")?.dataset.ref ?? null) : null;
}

function paneOf(target: EventTarget | null): string | null {
  return target instanceof Element ? (target.closest<HTMLElement>("[data-pane]")?.dataset.pane ?? null) : null;
}

/** A view that finds out itself what is under the pointer (the editor) says so with `data-own-hover`. */
function hasOwnHover(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("[data-own-hover]") !== null;
}

export function installLighting(root: HTMLElement): void {
  root.addEventListener("pointerover", (event) => {
    paneUnderPointer = paneOf(event.target);
    if (!hasOwnHover(event.target)) hovered.value = refUnder(event.target);
  });
  root.addEventListener("pointerleave", () => {
    paneUnderPointer = null;
    hovered.value = null;
  });
  root.addEventListener("focusin", (event) => {
    if (hasOwnHover(event.target)) return;
    paneUnderPointer = paneOf(event.target);
    hovered.value = refUnder(event.target);
  });
  root.addEventListener("click", (event) => {
    const item = refUnder(event.target);
    const isControl = event.target instanceof Element && event.target.closest("button, a, input, select, [data-no-pin]");
    const isSelecting = String(getSelection() ?? "") !== "";
    if (item && !isControl && !isSelecting) togglePin(item);
  });
  root.addEventListener("keydown", (event) => {
    const target = event.target;
    // A control does something of its own, by the key as by the pointer.
    const isControl = target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement;
    if (event.key === "Enter" && target instanceof HTMLElement && target.dataset.ref && !isControl) togglePin(target.dataset.ref);
  });

  let repaint = 0;
  new MutationObserver(() => {
    cancelAnimationFrame(repaint);
    repaint = requestAnimationFrame(() => paint(root));
  }).observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-ref"] });

  let scroll = 0;
  effect(() => {
    const focus = focusOfLight.value;
    lit.value;
    paint(root);
    window.clearTimeout(scroll);
    if (focus !== null) scroll = window.setTimeout(() => scrollPartnersIntoView(root), SCROLL_AFTER_MS);
  });

  // Lines move as soon as the text changes: what was pinned may be another line by now.
  effect(() => {
    if (isEdited.value) pinned.value = null;
  });

  // A pinned thing chooses the graph that the panes speak of, and the kernel that is open, unless the one that is open
  // already has a part in it.
  effect(() => {
    const item = pinned.value;
    if (item === null) return;
    const name = graphNameOf(item);
    const index = (report.peek()?.graphs ?? []).findIndex((graph) => graph.name === name);
    if (index >= 0) graphIndex.value = index;
    const kind = compilerShown.peek() === "peer" ? "peer" : "kernel";
    const places = kindOf(item) === kind ? [numberIn(item)] : links.peek().numbersOf(item, kind, kind === "kernel" ? (shownGraph.peek()?.name ?? null) : null);
    const [first] = places;
    const picked = kernelPicked.peek();
    // A click into the text is for writing as well: it follows to the open kernel, and opens none.
    if (first === undefined || (kindOf(item) === "line" && picked === null)) return;
    if (picked === null || !places.includes(picked)) kernelPicked.value = first;
  });
}

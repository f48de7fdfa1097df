/**
 * Which part of the map is seen. d3-zoom moves it; everything that follows the map (the overview, the card at a pair)
 * reads `view`.
 */
import { signal } from "@preact/signals";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior } from "d3-zoom";
import type { Box, Point } from "../../graph/dot";

export interface View {
  x: number;
  y: number;
  k: number;
}

/** The smallest text of the map is 12 pixels: at this scale it is 10. */
export const READABLE = 10 / 12;
const LARGEST_THAT_OPENS = 1.1;
const MARGIN = 18;
/** The legend stands at the lower edge. */
const FOOT = 34;
const MOVE_MS = 200;

export const view = signal<View>({ x: 0, y: 0, k: 1 });
/** The map's size on screen. */
export const size = signal<{ width: number; height: number }>({ width: 0, height: 0 });
/** Pixels at the right that a list covers: nothing is placed below it. */
export const covered = signal(0);
/** True once the reader moved it: from then on it is not placed anew. */
export let wasMoved = false;

let element: SVGSVGElement | null = null;
let behaviour: ZoomBehavior<SVGSVGElement, unknown> | null = null;
let animation = 0;

/** Begins to listen; the answer ends that. */
export function attach(svg: SVGSVGElement, onResize: () => void): () => void {
  element = svg;
  behaviour = zoom<SVGSVGElement, unknown>()
    .scaleExtent([0.02, 4])
    .clickDistance(5)
    // d3's own way reads the element, which fails once it has left the page.
    .extent(() => [[0, 0], [size.peek().width, size.peek().height]])
    .on("zoom", (event: { transform: View; sourceEvent: Event | null }) => {
      if (event.sourceEvent) {
        wasMoved = true;
        cancelAnimationFrame(animation);
      }
      const { x, y, k } = event.transform;
      view.value = { x, y, k };
    });
  const selected = select(svg);
  selected.call(behaviour).on("dblclick.zoom", null);
  const observer = new ResizeObserver(() => {
    size.value = { width: svg.clientWidth, height: svg.clientHeight };
    onResize();
  });
  observer.observe(svg);
  size.value = { width: svg.clientWidth, height: svg.clientHeight };
  return () => {
    observer.disconnect();
    selected.on(".zoom", null);
    cancelAnimationFrame(animation);
    element = null;
    behaviour = null;
  };
}

/** The map is another one: it may be placed anew. */
export function forgetMoves(): void {
  wasMoved = false;
}

function apply(to: View): void {
  if (element && behaviour) behaviour.transform(select(element), zoomIdentity.translate(to.x, to.y).scale(to.k));
}

/** At once, or in a short movement that the eye can follow. */
function go(to: View, isCalm: boolean): void {
  cancelAnimationFrame(animation);
  if (isCalm || matchMedia("(prefers-reduced-motion: reduce)").matches) return apply(to);
  const from = view.value;
  const began = performance.now();
  const step = (now: number): void => {
    const part = Math.min(1, (now - began) / MOVE_MS);
    const eased = 1 - (1 - part) ** 3;
    apply({ x: from.x + (to.x - from.x) * eased, y: from.y + (to.y - from.y) * eased, k: from.k + (to.k - from.k) * eased });
    if (part < 1) animation = requestAnimationFrame(step);
  };
  animation = requestAnimationFrame(step);
  return undefined;
}

export function centreOn(point: Point, k: number = view.value.k, isCalm = false): void {
  go({ x: (size.value.width - covered.peek()) / 2 - point.x * k, y: (size.value.height - FOOT) / 2 - point.y * k, k }, isCalm);
}

export function zoomBy(factor: number): void {
  wasMoved = true;
  if (element) behaviour?.scaleBy(select(element), factor);
}

/** The scale at which all of a box is seen. */
export function scaleOf(box: Box): number {
  return Math.min((size.value.width - covered.peek() - 2 * MARGIN) / Math.max(1, box.width), (size.value.height - FOOT - 2 * MARGIN) / Math.max(1, box.height));
}

export function fit(box: Box, isCalm = false): void {
  const k = Math.min(LARGEST_THAT_OPENS, scaleOf(box));
  centreOn({ x: box.x + box.width / 2, y: box.y + box.height / 2 }, k, isCalm);
}

/** A part of the map, readable: larger than that where it all fits. Nothing is above the map, so nothing is left free there. */
export function show(box: Box, isCalm = false): void {
  const k = Math.max(READABLE, Math.min(1, scaleOf(box)));
  const highest = (size.value.height - FOOT - 2 * MARGIN) / 2 / k;
  centreOn({ x: box.x + box.width / 2, y: Math.max(highest, box.y + box.height / 2) }, k, isCalm);
}

/** Moves no more than it takes for a box to be seen. */
export function keepInView(box: Box): void {
  const { x, y, k } = view.value;
  const { width, height } = size.value;
  const [left, top, far, low] = [box.x * k + x, box.y * k + y, (box.x + box.width) * k + x, (box.y + box.height) * k + y];
  const reach = width - covered.peek() - MARGIN;
  const dx = left < MARGIN ? MARGIN - left : far > reach ? Math.max(reach - far, MARGIN - left) : 0;
  const dy = top < MARGIN ? MARGIN - top : low > height - FOOT - MARGIN ? Math.max(height - FOOT - MARGIN - low, MARGIN - top) : 0;
  if (dx !== 0 || dy !== 0) go({ x: x + dx, y: y + dy, k }, false);
}

/** A box of the map as a rectangle of the window. */
export function onScreen(box: Box): DOMRect | null {
  const { x, y, k } = view.value;
  const frame = element?.getBoundingClientRect();
  return frame ? new DOMRect(frame.x + box.x * k + x, frame.y + box.y * k + y, box.width * k, box.height * k) : null;
}

import { effect } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { isNarrow } from "../../layout";
import { type Pair, reasonShown } from "../../state";
import { anchorOfPair } from "../map";
import { placeCard, type Rect, type Side } from "./place";

const EDGE = 8;
/** As in why.css. */
const WIDE = 920;
const STEP = 24;

const ARROWS: Record<string, [number, number]> = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

function windowBounds(): Rect {
  const top = document.querySelector(".main")?.getBoundingClientRect().top ?? 0;
  return { left: EDGE, top: top + EDGE, right: window.innerWidth - EDGE, bottom: window.innerHeight - EDGE };
}

function mapBounds(outer: Rect): Rect {
  const map = document.getElementById("slot-map")?.getBoundingClientRect();
  if (!map || map.width === 0) return outer;
  return { left: Math.max(outer.left, map.left), top: Math.max(outer.top, map.top), right: Math.min(outer.right, map.right), bottom: Math.min(outer.bottom, map.bottom) };
}

/** Whether a card so wide fits at either side of what it speaks of: else a reason's page stands below, not beside. */
function hasRoom(anchor: Rect | null, width: number, { left, right }: Rect): boolean {
  return anchor === null || Math.max(anchor.left - left, right - anchor.right) >= width + 2 * EDGE;
}

function moveTo(card: HTMLElement, left: number, top: number): void {
  card.style.left = `${Math.round(left)}px`;
  card.style.top = `${Math.round(top)}px`;
}

/** Keeps the card beside its pair while the map moves, until the reader drags it. On a phone it is a sheet. */
export function usePlace(card: RefObject<HTMLElement | null>, handle: RefObject<HTMLElement | null>, pair: Pair | null): void {
  const subject = pair && `${pair.graph} ${pair.a} ${pair.b}`;
  useLayoutEffect(() => {
    const element = card.current;
    if (!element || isNarrow.value) return undefined;
    let side: Side | null = null;
    let wasDragged = false;
    let frame = 0;
    const anchor = (): DOMRect | null => pair && anchorOfPair(pair);
    const place = (): void => {
      if (wasDragged) return;
      const outer = windowBounds();
      const at = anchor();
      element.toggleAttribute("data-wide", reasonShown.peek() !== null && pair !== null && hasRoom(at, WIDE, outer));
      const box = element.getBoundingClientRect();
      const placed = placeCard(at, { width: box.width, height: box.height }, mapBounds(outer), outer, side);
      side = placed.side;
      moveTo(element, placed.left, placed.top);
    };
    const soon = (): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(place);
    };
    place();
    const unfollow = effect(() => {
      anchor();
      reasonShown.value;
      soon();
    });
    const observer = new ResizeObserver(soon);
    observer.observe(element);
    window.addEventListener("resize", soon);
    const undrag = draggable(element, handle.current, () => (wasDragged = true));
    return () => {
      unfollow();
      observer.disconnect();
      window.removeEventListener("resize", soon);
      undrag();
      cancelAnimationFrame(frame);
    };
  }, [subject, isNarrow.value]);
}

/** By the pointer on the handle, or by arrows while the handle has the focus. */
function draggable(card: HTMLElement, handle: HTMLElement | null, onDrag: () => void): () => void {
  if (!handle) return () => undefined;
  const moveBy = (x: number, y: number): void => {
    onDrag();
    const box = card.getBoundingClientRect();
    const within = (value: number, most: number): number => Math.max(EDGE, Math.min(value, most));
    moveTo(card, within(box.left + x, window.innerWidth - box.width - EDGE), within(box.top + y, window.innerHeight - 60));
  };
  const onDown = (event: PointerEvent): void => {
    if (event.button === 0 && !(event.target as Element).closest("button:not(.why-grip), select, a")) handle.setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent): void => {
    if (handle.hasPointerCapture(event.pointerId)) moveBy(event.movementX, event.movementY);
  };
  const onKey = (event: KeyboardEvent): void => {
    const by = ARROWS[event.key];
    if (!by || !(event.target as Element).matches(".why-grip")) return;
    event.preventDefault();
    moveBy(...by);
  };
  handle.addEventListener("pointerdown", onDown);
  handle.addEventListener("pointermove", onMove);
  handle.addEventListener("keydown", onKey);
  return () => {
    handle.removeEventListener("pointerdown", onDown);
    handle.removeEventListener("pointermove", onMove);
    handle.removeEventListener("keydown", onKey);
  };
}

/** Takes the keyboard to the card where something had it, and back to that when the card closes. */
export function useFocus(card: RefObject<HTMLElement | null>, isOpen: boolean): void {
  useEffect(() => {
    if (!isOpen) return undefined;
    const before = document.activeElement;
    // Nothing had it: the page was opened at this card by a link, or by the pointer.
    if (before instanceof HTMLElement || before instanceof SVGElement) {
      if (before !== document.body) card.current?.focus({ preventScroll: true });
    }
    return () => {
      if (card.current?.contains(document.activeElement) === false && document.activeElement !== document.body) return;
      if (before === document.body) return;
      const target = before?.isConnected ? before : document.getElementById("pane-map");
      if (target instanceof HTMLElement || target instanceof SVGElement) target.focus({ preventScroll: true });
    };
  }, [isOpen]);
}

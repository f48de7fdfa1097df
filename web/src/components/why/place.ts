/** Where the card stands: beside what it speaks of, and never over it. Pure. */

export interface Rect {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Size {
  width: number;
  height: number;
}

export type Side = "right" | "left" | "below" | "above";

export interface Placed {
  left: number;
  top: number;
  side: Side | null;
}

const GAP = 14;
const SIDES: readonly Side[] = ["right", "left", "below", "above"];

function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(value, high));
}

function beside(side: Side, anchor: Rect, size: Size, bounds: Rect): Placed {
  const top = clamp((anchor.top + anchor.bottom - size.height) / 2, bounds.top, bounds.bottom - size.height);
  const left = clamp((anchor.left + anchor.right - size.width) / 2, bounds.left, bounds.right - size.width);
  if (side === "right") return { side, top, left: anchor.right + GAP };
  if (side === "left") return { side, top, left: anchor.left - GAP - size.width };
  if (side === "below") return { side, left, top: anchor.bottom + GAP };
  return { side, left, top: anchor.top - GAP - size.height };
}

function isWithin({ left, top }: Placed, size: Size, bounds: Rect): boolean {
  return left >= bounds.left && top >= bounds.top && left + size.width <= bounds.right && top + size.height <= bounds.bottom;
}

/**
 * The first place that fits: on the side where it was, then within the inner bounds (the map), then within the outer
 * ones (the window). Where it fits nowhere, or nothing is known of what it speaks of, the inner bounds' corner.
 */
export function placeCard(anchor: Rect | null, size: Size, inner: Rect, outer: Rect, was: Side | null = null): Placed {
  const corner: Placed = { side: null, left: clamp(inner.right - size.width - GAP, outer.left, outer.right - size.width), top: clamp(inner.top + GAP, outer.top, Math.max(outer.top, outer.bottom - size.height)) };
  if (anchor === null) return corner;
  const order = was === null ? SIDES : [was, ...SIDES.filter((side) => side !== was)];
  for (const bounds of [inner, outer]) {
    for (const side of order) {
      const placed = beside(side, anchor, size, bounds);
      if (isWithin(placed, size, bounds)) return placed;
    }
  }
  return corner;
}

/** Where the bytes of each edge stand: beside its line, and over no node and no other number. Pure. */
import type { Box, Layout, Point } from "./dot";
import type { MapGraph } from "./map";

/** Of the type that numbers on the map are set in: wide enough for each of its characters. */
const CHARACTER = 7.2;
const HEIGHT = 14;
/** Between a line, which may be seven pixels wide, and its number. */
const GAP = 6;
const KERNEL_NAME = { width: 34, height: 20 };
/** Only what lies in one band of the map can meet. */
const BAND = 128;

export interface Label extends Point {
  text: string;
}

/** The text's left end and base line; null for an edge without a number. */
export function placeLabels(map: MapGraph, layout: Layout, texts: readonly (string | null)[]): (Label | null)[] {
  const taken = new Bands();
  for (const { id, width, height } of map.nodes) {
    const at = layout.nodes[id];
    if (at) taken.add({ x: at.x - width / 2, y: at.y - height / 2, width, height });
  }
  for (const caption of Object.values(layout.captions)) taken.add(caption);
  for (const { id, kind } of map.clusters) {
    const box = layout.boxes[id];
    if (box && kind === "kernel") taken.add({ ...box, ...KERNEL_NAME });
  }
  return texts.map((text, place) => {
    const stops = layout.edges[place]?.stops ?? [];
    if (!text || stops.length === 0) return null;
    const width = text.length * CHARACTER;
    const sides = [GAP, -GAP - width];
    const boxes = stops.flatMap(({ x, y }) => sides.map((shift) => ({ x: x + shift, y: y - HEIGHT / 2, width, height: HEIGHT })));
    const box = taken.freest(boxes);
    taken.add(box);
    return { text, x: box.x, y: box.y + HEIGHT - 3 };
  });
}

class Bands {
  private readonly bands = new Map<number, Box[]>();

  add(box: Box): void {
    for (const band of bandsOf(box)) this.bands.set(band, [...(this.bands.get(band) ?? []), box]);
  }

  /** The first that nothing is in the way of, or the one with least in its way. */
  freest(boxes: readonly Box[]): Box {
    let [best, least] = [boxes[0]!, Number.POSITIVE_INFINITY];
    for (const box of boxes) {
      const covered = bandsOf(box).flatMap((band) => this.bands.get(band) ?? []).reduce((sum, other) => sum + overlap(box, other), 0);
      if (covered < least) [best, least] = [box, covered];
      if (covered === 0) break;
    }
    return best;
  }
}

function bandsOf({ y, height }: Box): number[] {
  const [first, last] = [Math.floor(y / BAND), Math.floor((y + height) / BAND)];
  return Array.from({ length: last - first + 1 }, (_unused, place) => first + place);
}

export function overlap(one: Box, other: Box): number {
  const wide = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
  const high = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
  return wide > 0 && high > 0 ? wide * high : 0;
}

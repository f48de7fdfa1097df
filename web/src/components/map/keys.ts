/** Arrows on the map: down to a reader, up to what is read, aside to the nearest node of about the same height. */
import type { Frame, Picture } from "../../graph/stack";
import { frameOf, picture } from "./places";

export interface Stop {
  graph: string;
  id: string;
}

/** The node that Tab reaches first. */
export function firstStop(drawn: Picture): Stop | null {
  const [frame] = drawn.frames;
  const [node] = frame?.map.nodes ?? [];
  return frame && node ? { graph: frame.map.graph, id: node.id } : null;
}

function nearest(frame: Frame, from: string, ids: readonly string[], fits: (dx: number, dy: number) => boolean): string | null {
  const at = frame.layout.nodes[from];
  let best: { id: string; distance: number } | null = null;
  for (const id of ids) {
    const to = frame.layout.nodes[id];
    if (!at || !to || id === from || !fits(to.x - at.x, to.y - at.y)) continue;
    const distance = Math.hypot(to.x - at.x, to.y - at.y);
    if (!best || distance < best.distance) best = { id, distance };
  }
  return best?.id ?? null;
}

/** The node of the frame above or below that is at its near end. */
function inNextFrame(frame: Frame, step: 1 | -1): Stop | null {
  const frames = picture.value?.frames ?? [];
  const next = frames[frames.indexOf(frame) + step];
  const nodes = step > 0 ? next?.map.nodes[0] : next?.map.nodes.at(-1);
  return next && nodes ? { graph: next.map.graph, id: nodes.id } : null;
}

export function neighbour(from: Stop, key: string): Stop | null {
  const frame = frameOf(from.graph);
  if (!frame) return null;
  const all = frame.map.nodes.map((node) => node.id);
  const along = (isDown: boolean): string[] => frame.map.edges.flatMap((edge) => (isDown ? edge.from === from.id && edge.to : edge.to === from.id && edge.from) || []);
  const ways: Record<string, () => string | null> = {
    ArrowDown: () => nearest(frame, from.id, along(true), () => true) ?? nearest(frame, from.id, all, (_dx, dy) => dy > 20),
    ArrowUp: () => nearest(frame, from.id, along(false), () => true) ?? nearest(frame, from.id, all, (_dx, dy) => dy < -20),
    ArrowRight: () => nearest(frame, from.id, all, (dx, dy) => dx > 4 && Math.abs(dy) <= 2 * Math.abs(dx)),
    ArrowLeft: () => nearest(frame, from.id, all, (dx, dy) => dx < -4 && Math.abs(dy) <= 2 * Math.abs(dx)),
    Home: () => all[0] ?? null,
    End: () => all.at(-1) ?? null,
  };
  const id = ways[key]?.();
  if (id) return { graph: from.graph, id };
  if (key === "ArrowDown") return inNextFrame(frame, 1);
  return key === "ArrowUp" ? inNextFrame(frame, -1) : null;
}

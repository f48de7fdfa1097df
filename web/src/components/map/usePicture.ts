/** From the report on screen to the picture, in slices: a large report must not hold up the page. */
import { useEffect, useState } from "preact/hooks";
import { layOut } from "../../graph/layout";
import { type MapGraph, mapOf } from "../../graph/map";
import { inRunningOrder, type Picture, stack } from "../../graph/stack";
import type { Graph, Report } from "../../report";
import { breathe } from "../../slices";
import { fxLevel, links } from "../../state";
import { lookFor, opened, viewsShown } from "./look";
import { picture } from "./places";

interface Known {
  parts: unknown[];
  map: MapGraph;
}

const known = new WeakMap<Graph["fx"], Map<string, Known>>();

/** A graph's map is made anew only where a part that it is made of changed. */
function mapFor(graph: Graph): MapGraph {
  const level = graph.aten.length > 0 ? fxLevel.peek() : "fx";
  const look = lookFor(graph.name, level);
  const parts = [graph.aten, graph.loops, graph.kernels, graph.traffic, level === "fx" ? links.peek() : null];
  const key = [graph.name, level, look.showViews, [...look.opened].join()].join(" ");
  let maps = known.get(graph.fx);
  if (!maps) known.set(graph.fx, (maps = new Map()));
  const before = maps.get(key);
  if (before && parts.every((part, place) => part === before.parts[place])) return before.map;
  const map = mapOf(graph, look, links.peek());
  maps.set(key, { parts, map });
  return map;
}

async function draw(report: Report, isWanted: () => boolean): Promise<Picture | null> {
  const ready = [];
  for (const graph of inRunningOrder(report)) {
    if (graph.aten.length + graph.fx.length === 0) continue;
    await breathe();
    if (!isWanted()) return null;
    const map = mapFor(graph);
    await breathe();
    ready.push(layOut(map).then((layout) => ({ graph, map, layout })));
  }
  const drawn = await Promise.all(ready);
  await breathe();
  return stack(report, drawn);
}

export interface Drawn {
  report: Report;
  picture: Picture;
}

/** The newest picture; while another one is made, the one before. */
export function usePicture(report: Report | null): Drawn | null {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const level = fxLevel.value;
  const isDynamo = level === "fx" || report?.graphs.some((graph) => graph.aten.length === 0);
  useEffect(() => {
    let isWanted = true;
    if (!report) {
      picture.value = null;
      setDrawn(null);
      return undefined;
    }
    void draw(report, () => isWanted).then((made) => {
      if (!isWanted || !made) return;
      picture.value = made;
      setDrawn({ report, picture: made });
    });
    return () => {
      isWanted = false;
    };
  }, [report, level, opened.value, viewsShown.value, isDynamo ? links.value : null]);
  return drawn;
}

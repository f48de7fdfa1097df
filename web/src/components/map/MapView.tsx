import { effect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Refusal } from "../../graph/refusals";
import type { Box } from "../../graph/dot";
import type { Frame, Picture } from "../../graph/stack";
import { graphNameOf, kindOf, nameIn } from "../../links";
import type { Peer } from "../../report";
import { lit, pair, pinned, round, shownGraph } from "../../state";
import { askWithSelected } from "./asking";
import { blobsOfPeer, blobsOfRound } from "./blobs";
import * as camera from "./camera";
import { Drawing } from "./Drawing";
import { firstStop, neighbour, type Stop } from "./keys";
import { Legend } from "./Legend";
import { PairMarks } from "./PairMarks";
import { close, compilersShown, open, showLayer } from "./look";
import { Minimap } from "./Minimap";
import { boxOf, boxOfPair, locate, picture as shownPicture } from "./places";
import type { Drawn } from "./usePicture";

/** Text below 10 pixels on screen is left out; what tells kernels apart is then written larger. */
function paintDetail(svg: SVGSVGElement, k: number): void {
  const detail = k >= camera.READABLE ? "full" : k >= 10 / 13 ? "names" : "kernels";
  if (svg.dataset.detail !== detail) svg.dataset.detail = detail;
  svg.style.setProperty("--unzoom", String(1 / k));
  if (detail !== "kernels") return;
  for (const text of svg.querySelectorAll<SVGTextElement>(".from-afar")) {
    text.classList.toggle("fits", Number(text.dataset.width) * k >= Number(text.dataset.characters) * 7 + 6);
  }
}

/** What is lit and has no place of its own, as a view or a node of a layer that is not drawn, lights what tells of it. */
function paintToldOf(svg: SVGSVGElement, refs: ReadonlySet<string>, drawn: Picture | null): void {
  const ids = new Set<string>();
  for (const item of refs) {
    const kind = kindOf(item);
    const frame = kind === "aten" || kind === "fx" ? drawn?.frames.find((one) => one.map.graph === graphNameOf(item)) : undefined;
    const id = frame?.map.idOf.get(nameIn(item));
    if (frame && id !== undefined && id !== nameIn(item)) ids.add(`${frame.map.graph}/${id}`);
  }
  for (const node of svg.querySelectorAll<SVGElement>(".node")) {
    node.toggleAttribute("data-lit-too", ids.has(`${node.dataset.graph}/${node.dataset.node}`));
  }
}

/** The picture opens whole where that is readable. Else it opens at what the link names, or where most bytes are at stake in the graph that the selector names. */
function place(drawn: Drawn, refusals: readonly Refusal[]): void {
  const whole = { x: -drawn.picture.width / 2, y: 0, width: drawn.picture.width, height: drawn.picture.height };
  const named = selectedBox();
  const most = refusals.find((one) => one.graph === shownGraph.peek()?.name);
  const costliest = most ? boxOfPair({ graph: most.graph, a: most.a, b: most.b }) : null;
  if (camera.scaleOf(whole) >= camera.READABLE) camera.fit(whole, true);
  else if (named ?? costliest) camera.show((named ?? costliest)!, true);
  else camera.show({ x: -1, y: 0, width: 2, height: Math.min(whole.height, camera.size.peek().height - 40) }, true);
}

function selectedBox(): Box | null {
  const [asked, item] = [pair.peek(), pinned.peek()];
  return (asked && boxOfPair(asked)) ?? (item === null ? null : boxOf(item));
}

/** Brings what is selected into view, and draws its layer where another of the equal ones is drawn. */
function follow(item: string | null): void {
  const found = item === null ? null : locate(item);
  if (item === null || !found) return;
  const layer = found.nodes.map((name) => found.frame.map.layerOf(name)).find((one) => one !== null);
  const cluster = found.frame.map.clusters.find((one) => one.id === layer?.split(":")[0]);
  const number = Number(layer?.split(":")[1]);
  if (cluster && cluster.shown !== number) showLayer(found.frame.map.graph, cluster.id, number);
  const box = boxOf(item);
  if (box) camera.keepInView(box);
}

/** Pixels that the list at the edge takes. Where it takes most of the map, nothing can be placed beside it. */
function coveredByList(hasList: boolean): number {
  return hasList && camera.size.value.width > 560 ? 276 : 0;
}

interface Props {
  drawn: Drawn;
  refusals: readonly Refusal[];
  peer: Peer | null;
  hasList: boolean;
}

export function MapView({ drawn, refusals, peer, hasList }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const content = useRef<SVGGElement>(null);
  const placed = useRef<string | null>(null);
  const [stop, setStop] = useState<Stop | null>(null);
  const { picture, report } = drawn;
  camera.covered.value = coveredByList(hasList);
  const latest = useRef({ drawn, refusals });
  latest.current = { drawn, refusals };

  useEffect(() => {
    if (!svg.current) return undefined;
    const element = svg.current;
    let wasHidden = true;
    const detach = camera.attach(element, () => {
      // What is selected stays where it is, as far as it can be seen there.
      const selected = selectedBox();
      if (selected && placed.current !== null && element.clientWidth > 0 && !wasHidden) camera.keepInView(selected);
      else if (!camera.wasMoved) place(latest.current.drawn, latest.current.refusals);
      wasHidden = element.clientWidth === 0;
    });
    const stopPainting = effect(() => {
      const { x, y, k } = camera.view.value;
      content.current?.setAttribute("transform", `translate(${x},${y}) scale(${k})`);
      paintDetail(element, k);
    });
    const stopLighting = effect(() => paintToldOf(element, lit.value, shownPicture.value));
    return () => {
      stopPainting();
      stopLighting();
      detach();
    };
  }, []);

  useEffect(() => {
    const isOther = placed.current !== report.id;
    if (isOther) camera.forgetMoves();
    if (isOther || !camera.wasMoved) place(drawn, refusals);
    placed.current = report.id;
    if (svg.current) paintDetail(svg.current, camera.view.peek().k);
  }, [picture]);

  useEffect(() => {
    if (pair.value) {
      const box = boxOfPair(pair.value);
      if (box) camera.keepInView(box);
    }
  }, [pair.value, picture]);
  useEffect(() => {
    if (!svg.current?.matches(":hover")) follow(pinned.value);
  }, [pinned.value]);

  const shown = shownGraph.value?.name;
  const before = useRef(shown);
  useEffect(() => {
    if (before.current === shown) return;
    before.current = shown;
    const frame = picture.frames.find((one) => one.map.graph === shown);
    const isFollowed = pinned.value !== null && graphNameOf(pinned.value) === shown;
    if (frame && !isFollowed && !svg.current?.matches(":hover")) camera.show({ ...frame, height: Math.min(frame.height, 300) });
  }, [shown]);
  const last = round.value;
  const compilers = compilersShown.value;
  const blobsOf = (frame: Frame) => {
    if (last !== null && frame.map.graph === shown) return blobsOfRound(frame, last);
    if (peer && compilers !== "ours") return blobsOfPeer(frame, peer, compilers === "both");
    return [];
  };
  const hasBoxes = (frame: Frame): boolean => (last === null || frame.map.graph !== shown) && (compilers !== "peer" || !peer);
  const drawing = useMemo(
    () => <Drawing picture={picture} refusals={refusals} blobsOf={blobsOf} hasBoxes={hasBoxes} stop={stop ?? firstStop(picture)} />,
    [picture, refusals, stop, shown, last, compilers, peer],
  );

  return (
    <div class="map">
      <svg
        ref={svg}
        class="map-svg"
        role="group"
        aria-label="Map of all graphs. Arrows go along edges, Enter selects, Shift and Enter asks why of the selected node and this one. The Nodes view has the same as a table."
        onClickCapture={(event) => {
          const item = refUnder(event.target);
          if (!event.shiftKey || item === null) return;
          event.stopPropagation();
          askWithSelected(item);
        }}
        onDblClick={(event) => {
          const node = nodeUnder(event.target);
          if (node?.id.match(/^[ks]\d+$/)) open(node.graph, node.id);
        }}
        onFocusIn={(event) => {
          const node = nodeUnder(event.target);
          if (node) setStop(node);
          const box = node && locate(refUnder(event.target) ?? "") ? boxOf(refUnder(event.target) ?? "") : null;
          if (box && event.target instanceof Element && event.target.matches(":focus-visible")) camera.keepInView(box);
        }}
        onKeyDown={(event) => onKey(event)}
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0 0.8 L8 4 L0 7.2 z" />
          </marker>
        </defs>
        <g ref={content}>
          {drawing}
          <PairMarks />
        </g>
      </svg>
      <Legend hasRefusals={refusals.length > 0} hasResults={picture.frames.some((frame) => frame.map.nodes.some((node) => node.isResult))} />
      <div class="map-corner">
        <Minimap picture={picture} />
        <div class="map-tools">
          <button type="button" aria-label="Zoom out" onClick={() => camera.zoomBy(1 / 1.3)}>
            −
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => camera.zoomBy(1.3)}>
            +
          </button>
          <button type="button" onClick={() => camera.fit({ x: -picture.width / 2, y: 0, width: picture.width, height: picture.height })}>
            Fit
          </button>
        </div>
      </div>
    </div>
  );
}

function refUnder(target: EventTarget | null): string | null {
  return target instanceof Element ? (target.closest<SVGElement>("[data-ref]")?.dataset.ref ?? null) : null;
}

function nodeUnder(target: EventTarget | null): Stop | null {
  const { node, graph } = (target instanceof Element ? target.closest<SVGElement>("[data-node]") : null)?.dataset ?? {};
  return node !== undefined && graph !== undefined ? { graph, id: node } : null;
}

function onKey(event: KeyboardEvent): void {
  const node = nodeUnder(event.target);
  const item = refUnder(event.target);
  if (!node || item === null || event.defaultPrevented) return;
  if (event.key === "Enter" || event.key === " ") {
    if (event.shiftKey) askWithSelected(item);
    else pinned.value = pinned.value === item ? null : item;
  } else if (event.key === "+") open(node.graph, node.id);
  else if (event.key === "-") close(node.graph, `k${/^kernel:/.test(item) ? "" : (locate(item)?.frame.map.nodes.find((one) => one.id === node.id)?.kernels[0] ?? "")}`);
  else {
    const next = neighbour(node, event.key);
    if (!next) return;
    document.querySelector<SVGElement>(`#pane-map [data-graph="${CSS.escape(next.graph)}"][data-node="${CSS.escape(next.id)}"]`)?.focus();
  }
  event.preventDefault();
  // The page's own listener selects with Enter as well.
  event.stopPropagation();
}


import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior } from "d3-zoom";
import type { Layout } from "../graph/dot";
import { layOut } from "../graph/layout";
import { type MapEdge, type MapGraph, type MapNode, mapOf } from "../graph/map";
import type { Graph } from "../report";
import { links, pinned, refs } from "../state";
import { EdgeCaption } from "./EdgeCaption";
import { Empty } from "./Scroller";

const MARGIN = 14;
const LARGEST_SCALE = 1.15;
/** Smaller than this even an overview is of no use: the graph then starts at its top, larger. */
const OVERVIEW_SCALE = 0.3;
const READABLE_SCALE = 0.6;

interface Props {
  graph: Graph;
  level: "aten" | "fx";
}

/** Wider is more bytes; the logarithm keeps a thousandfold difference drawable. */
function edgeWidth(edge: MapEdge): number {
  if (edge.kind !== "memory" || edge.bytes === 0) return 1;
  return Math.min(5, 1 + Math.max(0, Math.log10(edge.bytes) - 3) * 0.6);
}

/** Beside the straight way, where the edges of the graph run. */
function bowPath(from: { x: number; y: number } | undefined, to: { x: number; y: number } | undefined): string {
  if (!from || !to) return "";
  const side = from.x <= to.x ? -1 : 1;
  const reach = 34 + Math.min(70, Math.hypot(to.x - from.x, to.y - from.y) * 0.18);
  const middle = { x: (from.x + to.x) / 2 + side * reach, y: (from.y + to.y) / 2 };
  return `M${from.x},${from.y} Q${middle.x},${middle.y} ${to.x},${to.y}`;
}

function kernelClass(places: number[]): string {
  return places[0] === undefined ? "no-kernel" : `kernel-${places[0] % 8}`;
}

function NodeShape({ node, at, onOpen }: { node: MapNode; at: { x: number; y: number }; onOpen(node: MapNode): void }) {
  const { width, height } = node;
  return (
    <g
      class={`node node-${node.role} ${kernelClass(node.kernels)} ${node.dead ? "dead" : ""}`}
      transform={`translate(${at.x},${at.y})`}
      data-ref={node.ref}
      data-no-pin={node.role === "group" || undefined}
      onClick={node.role === "group" ? () => onOpen(node) : undefined}
    >
      <title>{node.title}</title>
      <rect x={-width / 2} y={-height / 2} width={width} height={height} rx={node.role === "operation" ? 5 : height / 2} />
      <text y={node.detail ? -3 : 4} class="node-label">
        {node.label}
      </text>
      {node.detail && (
        <text y={11} class="node-detail">
          {node.detail}
        </text>
      )}
      {node.kernels.length > 1 && (
        <text x={width / 2 - 4} y={-height / 2 + 3} class="node-again">
          {`in ${node.kernels.map((place) => `K${place + 1}`).join(" ")}`}
        </text>
      )}
      {node.dead && <line class="strike" x1={-width / 2 + 6} x2={width / 2 - 6} y1={node.detail ? -7 : 0} y2={node.detail ? -7 : 0} />}
    </g>
  );
}

function Drawing({ map, layout, graph, onOpen }: { map: MapGraph; layout: Layout; graph: Graph; onOpen(node: MapNode): void }) {
  return (
    <>
      {layout.boxes.map((box) => (
        <g key={box.place} class={`kernel-box kernel-${box.place % 8}`} data-ref={refs.value.kernel(box.place)}>
          <title>{graph.kernels[box.place]?.name}</title>
          <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={8} />
          <text x={box.x + 7} y={box.y + 13}>{`K${box.place + 1}`}</text>
        </g>
      ))}
      {map.edges.map((edge, index) => (
        <g key={`${edge.from} ${edge.to}`} class={`edge edge-${edge.kind}`} data-ref={edge.ref}>
          {edge.title && <title>{edge.title}</title>}
          {edge.ref && <path class="edge-hit" d={layout.edges[index]} />}
          <path class="edge-line" d={layout.edges[index]} stroke-width={edgeWidth(edge)} marker-end="url(#arrow)" />
        </g>
      ))}
      {map.refusals.map((refusal) => {
        const path = bowPath(layout.nodes[refusal.from], layout.nodes[refusal.to]);
        return (
          <g key={refusal.ref} class="refusal" data-ref={refusal.ref}>
            <title>{refusal.title}</title>
            <path class="refusal-hit" d={path} />
            <path class="refusal-line" d={path} />
          </g>
        );
      })}
      {map.nodes.map((node) => {
        const at = layout.nodes[node.id];
        return at && <NodeShape key={node.id} node={node} at={at} onOpen={onOpen} />;
      })}
    </>
  );
}

function useZoom(layout: Layout | null) {
  const svg = useRef<SVGSVGElement>(null);
  const content = useRef<SVGGElement>(null);
  const behaviour = useRef<ZoomBehavior<SVGSVGElement, unknown> | null>(null);

  const fit = (): void => {
    if (!svg.current || !behaviour.current || !layout) return;
    const { clientWidth, clientHeight } = svg.current;
    const whole = Math.min((clientWidth - 2 * MARGIN) / layout.width, (clientHeight - 2 * MARGIN) / layout.height);
    const scale = whole < OVERVIEW_SCALE ? READABLE_SCALE : Math.min(LARGEST_SCALE, whole);
    const [top] = Object.values(layout.nodes).sort((one, other) => one.y - other.y);
    const middle = layout.width * scale > clientWidth && top ? top.x : layout.width / 2;
    const x = clientWidth / 2 - middle * scale;
    const y = Math.max(MARGIN, (clientHeight - layout.height * scale) / 2);
    behaviour.current.transform(select(svg.current), zoomIdentity.translate(x, y).scale(scale));
  };

  const centreOn = (name: string): void => {
    const at = layout?.nodes[name];
    if (at && svg.current) behaviour.current?.translateTo(select(svg.current), at.x, at.y);
  };

  const zoomBy = (factor: number): void => {
    if (svg.current) behaviour.current?.scaleBy(select(svg.current), factor);
  };

  useEffect(() => {
    if (!svg.current) return undefined;
    const element = select(svg.current);
    behaviour.current = zoom<SVGSVGElement, unknown>()
      .scaleExtent([0.05, 4])
      .on("zoom", (event: { transform: { toString(): string } }) => content.current?.setAttribute("transform", event.transform.toString()));
    element.call(behaviour.current).on("dblclick.zoom", null);
    const observer = new ResizeObserver(fit);
    observer.observe(svg.current);
    fit();
    return () => {
      observer.disconnect();
      element.on(".zoom", null);
    };
  }, [layout]);
  return { svg, content, fit, centreOn, zoomBy };
}

export function GraphMap({ graph, level }: Props) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [layout, setLayout] = useState<{ map: MapGraph; layout: Layout } | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const map = useMemo(() => mapOf(graph, level, links.value, opened), [graph, level, links.value, opened]);
  useEffect(() => {
    let isWanted = true;
    layOut(map).then(
      (found) => isWanted && (setLayout({ map, layout: found }), setFailure(null)),
      (error: Error) => isWanted && setFailure(error.message),
    );
    return () => {
      isWanted = false;
    };
  }, [map]);
  const { svg, content, fit, centreOn, zoomBy } = useZoom(layout?.layout ?? null);

  useEffect(() => {
    const item = pinned.value;
    if (!item || !svg.current || svg.current.matches(":hover")) return;
    const lit = [item, ...links.value.partners(item)];
    const node = layout?.map.nodes.find((candidate) => lit.includes(candidate.ref));
    if (node && !isInView(svg.current, node.ref)) centreOn(node.id);
  }, [pinned.value]);

  if (failure !== null) return <Empty>{`The graph could not be drawn (${failure}); the Nodes tab lists it.`}</Empty>;
  return (
    <div class="map">
      <svg ref={svg} class="map-svg" role="img" aria-label={`FX graph of ${graph.name}, ${map.nodes.length} nodes; the Nodes tab has the same as a table`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0 0.8 L8 4 L0 7.2 z" />
          </marker>
        </defs>
        <g ref={content}>
          {layout && (
            <Drawing
              map={layout.map}
              layout={layout.layout}
              graph={graph}
              onOpen={(node) => setOpened(new Set([...opened, ...node.kernels]))}
            />
          )}
        </g>
      </svg>
      {level === "aten" && graph.traffic?.fused && <EdgeCaption graph={graph} />}
      <div class="map-tools">
        {opened.size > 0 && (
          <button type="button" onClick={() => setOpened(new Set())}>
            Collapse
          </button>
        )}
        <button type="button" aria-label="Zoom out" onClick={() => zoomBy(1 / 1.3)}>
          −
        </button>
        <button type="button" aria-label="Zoom in" onClick={() => zoomBy(1.3)}>
          +
        </button>
        <button type="button" onClick={fit}>
          Fit
        </button>
      </div>
    </div>
  );
}

function isInView(svg: SVGSVGElement, item: string): boolean {
  const element = [...svg.querySelectorAll<SVGElement>("[data-ref]")].find((candidate) => candidate.dataset.ref === item);
  if (!element) return false;
  const box = element.getBoundingClientRect();
  const view = svg.getBoundingClientRect();
  return box.top >= view.top && box.bottom <= view.bottom && box.left >= view.left && box.right <= view.right;
}

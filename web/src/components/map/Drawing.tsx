import { useMemo } from "preact/hooks";
import { type Between, type Frame, HEAD, type Picture } from "../../graph/stack";

import * as format from "../../format";
import { type Cluster, cut, type MapEdge, type MapNode } from "../../graph/map";
import type { Point } from "../../graph/dot";
import { placeLabels } from "../../graph/labels";
import type { Refusal } from "../../graph/refusals";
import { refsOf } from "../../links";
import { graphIndex, pair, shownGraph, shownReport } from "../../state";
import { askAbout } from "./asking";
import type { Blob } from "./blobs";
import { close, open, showLayer } from "./look";

/** Wider is more bytes; the logarithm keeps a thousandfold difference drawable. */
function edgeWidth(edge: MapEdge): number {
  if (edge.kind !== "memory" || edge.bytes === 0) return 1.2;
  return Math.min(7, 2 + Math.max(0, Math.log10(edge.bytes) - 3) * 1.1);
}

function kernelClass(places: readonly number[]): string {
  return places[0] === undefined ? "no-kernel" : `kernel-${places[0] % 8}`;
}

/** A word on the map that does something. */
interface ButtonProps {
  x: number;
  y: number;
  width: number;
  text: string;
  label: string;
  /** False where the node that it belongs to has a key for it: a map of hundreds of kernels has few stops for Tab. */
  isStop?: boolean;
  onPress(): void;
}

function MapButton({ x, y, width, text, label, isStop = true, onPress }: ButtonProps) {
  const press = (event: Event): void => {
    event.stopPropagation();
    event.preventDefault();
    onPress();
  };
  return (
    <g
      class="map-button"
      role="button"
      tabindex={isStop ? 0 : -1}
      aria-label={label}
      data-no-pin
      transform={`translate(${x},${y})`}
      onClick={press}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && press(event)}
    >
      <title>{label}</title>
      <rect width={width} height={24} rx={5} />
      <text x={width / 2} y={16.5}>
        {text}
      </text>
    </g>
  );
}

interface NodeProps {
  node: MapNode;
  at: Point;
  graph: string;
  isStop: boolean;
}

function NodeShape({ node, at, graph, isStop }: NodeProps) {
  const { width, height } = node;
  const kernel = node.kernels[0];
  const again = node.kernels.length > 1 ? `, computed again in ${node.kernels.slice(1).map((place) => `K${place + 1}`).join(" ")}` : "";
  return (
    <g
      class={`node node-${node.role} ${kernelClass(node.kernels)} ${node.dead ? "dead" : ""} ${node.isResult ? "is-result" : ""}`}
      transform={`translate(${at.x},${at.y})`}
      data-ref={node.ref}
      data-node={node.id}
      data-graph={graph}
      role="button"
      tabindex={isStop ? 0 : -1}
      aria-label={`${node.label}${node.detail ? `, ${node.detail}` : ""}${kernel !== undefined && node.role !== "group" ? `, K${kernel + 1}` : ""}${again}${node.dead ? ", dead" : ""}`}
    >
      <title>{node.title}</title>
      <rect class="node-shape" x={-width / 2} y={-height / 2} width={width} height={height} rx={node.role === "operation" || node.role === "group" ? 5 : height / 2} />
      {node.isResult && <line class="result-mark" x1={-width / 2 + 8} x2={width / 2 - 8} y1={height / 2 - 2} y2={height / 2 - 2} />}
      <text y={node.detail ? -3 : 4.5} class="node-label">
        {node.label}
      </text>
      {node.detail && (
        <text y={13} class="node-detail">
          {node.detail}
        </text>
      )}
      {node.role === "group" && kernel !== undefined && (
        <text class="from-afar" data-width={width} data-characters={`K${kernel + 1}`.length} dominant-baseline="central">
          {`K${kernel + 1}`}
        </text>
      )}
      {node.dead && <line class="strike" x1={-width / 2 + 6} x2={width / 2 - 6} y1={node.detail ? -7 : 0} y2={node.detail ? -7 : 0} />}
    </g>
  );
}

function ClusterFrame({ cluster, frame }: { cluster: Cluster; frame: Frame }) {
  const box = frame.layout.boxes[cluster.id];
  if (!box) return null;
  if (cluster.kind === "kernel") {
    return (
      <g class={`kernel-box kernel-${(cluster.kernel ?? 0) % 8}`} data-ref={refsOf(frame.graph).kernel(cluster.kernel ?? 0)}>
        <title>{cluster.title}</title>
        <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={8} />
      </g>
    );
  }
  if (cluster.kind === "module") {
    return (
      <g class="module">
        <title>{cluster.title}</title>
        <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={8} />
        <text class="near" x={box.x + 8} y={box.y + 16}>
          {cut(cluster.label, Math.floor(box.width / 8))}
        </text>
      </g>
    );
  }
  return (
    <g class="layers">
      {[10, 5].map((shift) => (
        <rect key={shift} class="layers-behind" x={box.x + shift} y={box.y + shift} width={box.width} height={box.height} rx={10} />
      ))}
      <rect class="layers-box" x={box.x} y={box.y} width={box.width} height={box.height} rx={10}>
        <title>{cluster.title}</title>
      </rect>
    </g>
  );
}

/** What the caption of equal layers has room for. */
const LAYER_CHARACTERS = 18;

/** How often the equal layers are there, and the way through them: above the edges, which pass below. */
function LayerSteps({ cluster, frame }: { cluster: Cluster; frame: Frame }) {
  const box = frame.layout.captions[cluster.id];
  if (!box) return null;
  const { name } = frame.graph;
  const step = (by: number): void => showLayer(name, cluster.id, (cluster.shown + by + cluster.count) % cluster.count);
  return (
    <>
      <text class="layers-count from-afar-too" x={box.x + 2} y={box.y + 18}>
        {`× ${cluster.count}`}
      </text>
      <g class="near">
        <text class="layers-name" x={box.x + 2} y={box.y + 38}>
          {format.middle(cluster.label, LAYER_CHARACTERS)}
        </text>
        <MapButton x={box.x} y={box.y + 46} width={24} text="‹" label={`The layer before, of ${cluster.title}`} onPress={() => step(-1)} />
        <text class="layers-place" x={box.x + 56} y={box.y + 62.5}>{`${cluster.shown + 1} of ${cluster.count}`}</text>
        <MapButton x={box.x + 88} y={box.y + 46} width={24} text="›" label={`The next layer, of ${cluster.title}`} onPress={() => step(1)} />
        <MapButton x={box.x} y={box.y + 74} width={112} text="show all" label={`Show all layers: ${cluster.title}`} onPress={() => showLayer(name, cluster.id, "all")} />
      </g>
    </>
  );
}

function EdgeLine({ edge, path, graph }: { edge: MapEdge; path: string; graph: string }) {
  return (
    <g
      class={`edge edge-${edge.kind}`}
      data-ref={edge.ref}
      onClick={() => {
        if (edge.pair) pair.value = { graph, ...edge.pair };
      }}
    >
      {edge.title && <title>{edge.title}</title>}
      {edge.ref && <path class="edge-hit" d={path} />}
      <path class="edge-line" d={path} stroke-width={edgeWidth(edge)} marker-end="url(#arrow)" />
    </g>
  );
}

/** Beside the straight way, where the edges of the graph run. */
function bowPath(from: Point, to: Point): string {
  const side = from.x <= to.x ? -1 : 1;
  const reach = 34 + Math.min(70, Math.hypot(to.x - from.x, to.y - from.y) * 0.18);
  const middle = { x: (from.x + to.x) / 2 + side * reach, y: (from.y + to.y) / 2 };
  return `M${from.x},${from.y} Q${middle.x},${middle.y} ${to.x},${to.y}`;
}

function RefusalLine({ refusal, frame }: { refusal: Refusal; frame: Frame }) {
  const [from, to] = [refusal.from, refusal.to].map((name) => frame.map.idOf.get(name) ?? "");
  const [start, end] = [frame.layout.nodes[from ?? ""], frame.layout.nodes[to ?? ""]];
  if (!start || !end || from === to) return null;
  const path = bowPath(start, end);
  return (
    <g class="refusal" data-ref={refusal.ref} onClick={() => askAbout(refusal)}>
      <title>{`not fused: ${format.sentence(refusal.decision.message)}`}</title>
      <path class="refusal-hit" d={path} />
      <path class="refusal-line" d={path} />
    </g>
  );
}

function BlobShape({ blob, frame }: { blob: Blob; frame: Frame }) {
  const ids = new Set(blob.ids);
  return (
    <g class={`blob blob-${blob.look} ${blob.class}`} data-ref={blob.ref}>
      <title>{blob.title}</title>
      {frame.map.edges.map((edge, place) =>
        ids.has(edge.from) && ids.has(edge.to) ? <path key={place} class="blob-way" d={frame.layout.edges[place]?.path} /> : null,
      )}
      {frame.map.nodes.map((node) => {
        const at = frame.layout.nodes[node.id];
        return ids.has(node.id) && at ? <rect key={node.id} x={at.x - node.width / 2 - 7} y={at.y - node.height / 2 - 7} width={node.width + 14} height={node.height + 14} rx={9} /> : null;
      })}
    </g>
  );
}

/** Names the graph; a click has the details below the map speak of it. */
function FrameHead({ frame }: { frame: Frame }) {
  const choose = (): void => {
    graphIndex.value = Math.max(0, shownReport.value?.graphs.findIndex((graph) => graph.name === frame.graph.name) ?? 0);
  };
  return (
    <g
      class="frame-head"
      role="button"
      tabindex={0}
      aria-label={`Graph ${frame.title}, ${frame.detail}: show its details`}
      aria-pressed={shownGraph.value?.name === frame.graph.name}
      onClick={choose}
      onKeyDown={(event) => event.key === "Enter" && choose()}
    >
      <rect class="frame-head-area" x={frame.x} y={frame.y} width={frame.width} height={HEAD} rx={12} />
      <text class="frame-title" x={frame.x + 16} y={frame.y + 23}>
        {frame.title}
        <tspan class="frame-detail" dx={8}>
          {frame.detail}
        </tspan>
      </text>
    </g>
  );
}

interface FrameProps {
  frame: Frame;
  refusals: readonly Refusal[];
  blobs: readonly Blob[];
  /** Our kernels' boxes are left out where other groups are drawn in their place. */
  hasBoxes: boolean;
  stop: string | null;
}

function FrameShape({ frame, refusals, blobs, hasBoxes, stop }: FrameProps) {
  const { map, layout, graph } = frame;
  const labels = useMemo(() => placeLabels(map, layout, map.edges.map(({ kind, bytes }) => (kind === "memory" && bytes > 0 ? format.bytes(bytes) : null))), [map, layout]);
  const openKernels = map.collapsed ? map.clusters.filter((cluster) => cluster.kind === "kernel") : [];
  return (
    <g class="frame" data-frame={graph.name}>
      <rect class="frame-box" x={frame.x} y={frame.y} width={frame.width} height={frame.height} rx={12} />
      <FrameHead frame={frame} />
      <g transform={`translate(${frame.origin.x},${frame.origin.y})`}>
        {map.clusters.filter((cluster) => cluster.kind === "layers").map((cluster) => <ClusterFrame key={cluster.id} cluster={cluster} frame={frame} />)}
        {map.clusters.filter((cluster) => cluster.kind === "module").map((cluster) => <ClusterFrame key={cluster.id} cluster={cluster} frame={frame} />)}
        {hasBoxes && map.clusters.filter((cluster) => cluster.kind === "kernel").map((cluster) => <ClusterFrame key={cluster.id} cluster={cluster} frame={frame} />)}
        {blobs.map((blob) => <BlobShape key={blob.key} blob={blob} frame={frame} />)}
        {map.edges.map((edge, place) => {
          const line = layout.edges[place];
          return line && <EdgeLine key={`${edge.from} ${edge.to}`} edge={edge} path={line.path} graph={graph.name} />;
        })}
        {labels.map((label, place) => label && (
          <text key={place} class="edge-bytes" x={label.x} y={label.y}>
            {label.text}
          </text>
        ))}
        {refusals.map((refusal) => <RefusalLine key={refusal.ref} refusal={refusal} frame={frame} />)}
        {map.nodes.map((node) => {
          const at = layout.nodes[node.id];
          return at && <NodeShape key={node.id} node={node} at={at} graph={graph.name} isStop={stop === node.id} />;
        })}
        {map.clusters.filter((cluster) => cluster.kind === "layers").map((cluster) => <LayerSteps key={cluster.id} cluster={cluster} frame={frame} />)}
        {hasBoxes && map.clusters.map((cluster) => {
          const box = cluster.kind === "kernel" ? layout.boxes[cluster.id] : undefined;
          return box && (
            <text key={cluster.id} class="kernel-name near" x={box.x + 8} y={box.y + 16} aria-hidden="true">
              {cluster.label}
            </text>
          );
        })}
        {hasBoxes && map.clusters.map((cluster) => {
          const box = cluster.kind === "kernel" ? layout.boxes[cluster.id] : undefined;
          return box && (
            <text key={cluster.id} class="from-afar" x={box.x + box.width / 2} y={box.y + box.height / 2} data-width={box.width} data-characters={cluster.label.length} dominant-baseline="central" aria-hidden="true">
              {cluster.label}
            </text>
          );
        })}
        {openKernels.map((cluster) => {
          const box = layout.boxes[cluster.id];
          return box && <MapButton key={cluster.id} x={box.x + box.width - 28} y={box.y + 4} width={24} text="−" label={`Close ${cluster.label}`} onPress={() => close(graph.name, cluster.id)} />;
        })}
        {map.nodes.filter((node) => node.role === "group").map((node) => {
          const at = layout.nodes[node.id];
          return at && <MapButton key={node.id} x={at.x + node.width / 2 - 28} y={at.y - 12} width={24} text="+" isStop={false} label={`Show the operations of ${node.label}`} onPress={() => open(graph.name, node.id)} />;
        })}
      </g>
    </g>
  );
}

function BetweenGraphs({ between }: { between: Between }) {
  const { y, height, found } = between;
  const middle = y + height / 2;
  return (
    <g class={`between ${found ? "between-break" : ""}`} data-ref={found?.line == null ? undefined : `line:${found.line}`}>
      <title>{found ? `${found.reason}\n${found.remedy}` : "The next graph runs after this one."}</title>
      <path class="between-line" d={`M0,${y + 4} L0,${y + height - 6}`} marker-end="url(#arrow)" />
      {found && (
        <>
          <rect class="between-chip" x={-170} y={middle - 22} width={340} height={44} rx={8} />
          <text class="between-title" y={middle - 4}>{`graph break${found.line === null ? "" : `, line ${found.line}`}`}</text>
          <text class="between-reason" y={middle + 13}>
            {found.title.length > 52 ? `${found.title.slice(0, 51)}…` : found.title}
          </text>
        </>
      )}
    </g>
  );
}

interface DrawingProps {
  picture: Picture;
  refusals: readonly Refusal[];
  blobsOf(frame: Frame): readonly Blob[];
  hasBoxes(frame: Frame): boolean;
  stop: { graph: string; id: string } | null;
}

export function Drawing({ picture, refusals, blobsOf, hasBoxes, stop }: DrawingProps) {
  return (
    <>
      {picture.betweens.map((between) => <BetweenGraphs key={between.y} between={between} />)}
      {picture.frames.map((frame) => (
        <FrameShape
          key={frame.map.graph}
          frame={frame}
          refusals={refusals.filter((refusal) => refusal.graph === frame.map.graph)}
          blobs={blobsOf(frame)}
          hasBoxes={hasBoxes(frame)}
          stop={stop?.graph === frame.map.graph ? stop.id : null}
        />
      ))}
    </>
  );
}

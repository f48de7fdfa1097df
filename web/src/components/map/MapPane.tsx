import type { TargetedKeyboardEvent } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { costliestRefusals } from "../../graph/refusals";
import { hiddenNow } from "../../lessons";
import { withoutKernels } from "../../questions";
import type { Report } from "../../report";
import { fxLevel, isFailed, isRunning, previous, report } from "../../state";
import { Empty } from "../Scroller";
import { Costliest } from "./Costliest";
import { Differences } from "./Differences";
import { compilersShown, foldLayers, hasAllLayers, listIsOpen, showCompilers, viewsShown } from "./look";
import { MapView } from "./MapView";
import { RoundBar, stepRound } from "./RoundBar";
import { SearchBox } from "./SearchBox";
import { usePicture } from "./usePicture";

function hasNodes(one: Report | null): one is Report {
  return one?.graphs.some((graph) => graph.aten.length + graph.fx.length > 0) ?? false;
}

/** The newest report that has a graph to draw; the one before, grey, until it has. */
function reportShown(): { shown: Report | null; stale: boolean } {
  const hidden = hiddenNow.value;
  const newest = hasNodes(report.value) ? report.value : hasNodes(previous.value) ? previous.value : null;
  if (newest === null || hidden === "all") return { shown: null, stale: false };
  return { shown: hidden === "kernels" ? withoutKernels(newest) : newest, stale: newest !== report.value };
}

/** Why there is no map. */
function emptyText(isDrawing: boolean): string {
  if (hiddenNow.value === "all") return "The map shows the answer. It opens after yours.";
  if (isRunning.value) return "The graph appears here when it is captured.";
  if (isDrawing) return "Drawing the map.";
  if (report.value === null) return "The map of your code appears here.";
  if (report.value.status === "user_error") return `The snippet failed before a graph was captured. ${report.value.error?.line == null ? "The message below the snippet says why." : "Correct the marked line to see the map."}`;
  return isFailed(report.value) ? "The exploration ended before a graph was captured." : "No graph was captured. Either nothing that was called computes with tensors, or a graph break says why: see Capture.";
}

function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

const LEVELS = { aten: "The operators that are compiled", fx: "The calls of the snippet, as Dynamo captured them" };

function Toggles({ shown }: { shown: Report }) {
  const isDynamo = fxLevel.value === "fx";
  return (
    <>
      {shown.peer && shown.peer.kernels.length > 0 && (
        <div class="toggle" role="group" aria-label="Kernels of">
          {([["ours", "ours"], ["peer", shown.peer.name], ["both", "both"]] as const).map(([id, name]) => (
            <button type="button" key={id} aria-pressed={compilersShown.value === id} onClick={() => showCompilers(id)}>
              {name}
            </button>
          ))}
        </div>
      )}
      {hasAllLayers() && (
        <button type="button" title="Draw one of the equal layers, and how often it comes" onClick={foldLayers}>
          fold layers
        </button>
      )}
      <div class="toggle" role="group" aria-label="Level of the graph">
        {(["aten", "fx"] as const).map((name) => (
          <button type="button" key={name} title={LEVELS[name]} aria-pressed={isDynamo === (name === "fx")} onClick={() => (fxLevel.value = name)}>
            {name === "aten" ? "aten" : "dynamo"}
          </button>
        ))}
      </div>
      <label class="check" title="Views and transposes compute nothing. Without a tick they appear in the operation that reads them.">
        <input type="checkbox" checked={viewsShown.value} onChange={(event) => (viewsShown.value = event.currentTarget.checked)} />
        views
      </label>
    </>
  );
}

/** Arrows begin at the node that Tab reaches. */
function enter(event: TargetedKeyboardEvent<HTMLElement>): void {
  if (event.target !== event.currentTarget || !event.key.startsWith("Arrow")) return;
  event.preventDefault();
  event.currentTarget.querySelector<SVGElement>('[data-node][tabindex="0"]')?.focus();
}

export function MapPane() {
  const { shown, stale } = reportShown();
  const drawn = usePicture(shown);
  const wantsPeer = compilersShown.value !== "ours";
  // What is said of the picture is of the report that it was drawn from.
  const refusals = useMemo(() => (drawn ? costliestRefusals(drawn.report.graphs) : []), [drawn?.report]);
  const peer = wantsPeer ? (drawn?.report.peer ?? null) : null;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "j") stepRound(1);
      if (event.key === "k") stepRound(-1);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <section class="pane" id="pane-map" data-pane="map" aria-label="Map" tabIndex={-1} onKeyDown={enter}>
      <div class="pane-bar">
        <h2>Map</h2>
        {hiddenNow.value === "kernels" && <span class="quiet">Kernels appear after your answer.</span>}
        {shown && <SearchBox report={shown} />}
        {shown && stale && <span class="stale-note">from the exploration before</span>}
        {shown && <Toggles shown={shown} />}
      </div>
      <div class="view map-view" data-stale={stale || undefined}>
        {shown && drawn ? (
          <>
            <MapView drawn={drawn} refusals={fxLevel.value === "aten" ? refusals : []} peer={peer} hasList={peer !== null || (refusals.length > 0 && listIsOpen())} />
            {peer ? <Differences peer={peer} graphs={drawn.report.graphs} /> : <Costliest refusals={refusals} />}
          </>
        ) : (
          <Empty>{emptyText(shown !== null)}</Empty>
        )}
      </div>
      {shown && hiddenNow.value === "nothing" && <RoundBar />}
    </section>
  );
}

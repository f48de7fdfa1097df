import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Hit, search } from "../../graph/search";
import type { Report } from "../../report";
import { fxLevel, pinned, say } from "../../state";
import * as camera from "./camera";
import { showLayer } from "./look";
import { boxOfNodes, frameOf } from "./places";

/** Goes to a hit: the equal layer that it is in is drawn, and it is selected. */
function goTo(hit: Hit): void {
  pinned.value = hit.ref;
  const frame = frameOf(hit.graph);
  if (!frame) return;
  const [id, layer] = frame.map.layerOf(hit.node)?.split(":") ?? [];
  if (id !== undefined) showLayer(hit.graph, id, Number(layer));
  const box = boxOfNodes(frame, [hit.node]);
  if (box) camera.show(box);
}

/** `/` comes here, Enter goes from hit to hit, Shift and Enter goes back. */
export function SearchBox({ report }: { report: Report }) {
  const input = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState("");
  const [place, setPlace] = useState<number | null>(null);
  const hits = useMemo(() => search(report.graphs, fxLevel.value, query, report.source), [report, fxLevel.value, query]);
  useEffect(() => {
    const onSlash = (event: KeyboardEvent): void => {
      const [target] = event.composedPath();
      const isTyping = target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", onSlash);
    return () => document.removeEventListener("keydown", onSlash);
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && query !== "") {
      setQuery("");
      event.preventDefault();
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    const next = hits.length === 0 ? null : place === null ? 0 : (place + (event.shiftKey ? -1 : 1) + hits.length) % hits.length;
    setPlace(next);
    const hit = next === null ? undefined : hits[next];
    if (hit) {
      goTo(hit);
      say(`${(next ?? 0) + 1} of ${hits.length}: ${hit.label}`);
    } else say("Nothing on the map matches.");
  };
  return (
    <div class="map-search" role="search">
      <input
        ref={input}
        type="search"
        aria-label="Search the map: a name, operation, kernel, module, or line 12"
        title="A name, operation, kernel or module, or “line 12”. Enter goes from hit to hit."
        placeholder="Search  /"
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setPlace(null);
        }}
        onKeyDown={onKeyDown}
      />
      {query !== "" && <span class="map-hits">{place === null ? `${hits.length}` : `${place + 1} of ${hits.length}`}</span>}
    </div>
  );
}

import { useRef } from "preact/hooks";
import { drawer, newestWith, report } from "../state";
import { GROUPS, type View, VIEWS } from "./views";

function badgeOf(view: View): number | undefined {
  if (view.of === "report") return report.value ? view.badge?.(report.value) : undefined;
  const shown = newestWith((graph, from) => view.hasPart({ graph, report: from, stale: false }));
  return shown ? view.badge?.(shown) : undefined;
}

function Word({ view, isReached }: { view: View; isReached: boolean }) {
  const badge = badgeOf(view);
  const isOpen = view.id === drawer.value;
  return (
    <button
      type="button"
      data-view={view.id}
      title={view.about}
      aria-expanded={isOpen}
      aria-controls={isOpen ? "drawer" : undefined}
      tabIndex={isReached ? 0 : -1}
      onClick={() => (drawer.value = isOpen ? null : view.id)}
    >
      {view.label}
      {badge !== undefined && badge !== 0 && <span class="badge">{badge}</span>}
    </button>
  );
}

/** One row at the bottom: each word opens the drawer above it, and closes it again. Arrows go from word to word. */
export function Toolbar() {
  const row = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const words = [...(row.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const now = words.findIndex((word) => word === document.activeElement);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: words.length - 1 }[event.key];
    if (next === undefined || now < 0) return;
    event.preventDefault();
    words[(next + words.length) % words.length]?.focus();
  };
  const reached = VIEWS.some((view) => view.id === drawer.value) ? drawer.value : VIEWS[0]?.id;
  return (
    <div class="toolbar" role="toolbar" aria-label="Details" data-pane="toolbar" ref={row} onKeyDown={onKeyDown}>
      {GROUPS.map((group, place) => (
        <div class="words" key={place}>
          {group.map((view) => (
            <Word key={view.id} view={view} isReached={view.id === reached} />
          ))}
        </div>
      ))}
    </div>
  );
}

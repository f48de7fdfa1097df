import { useEffect, useRef } from "preact/hooks";
import { open, pathOf } from "../explore";
import { report } from "../state";
import { visits } from "../visits";

/** The explorations of this visit: a click goes back to one, as the browser's own way back does. */
export function Earlier() {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      if (!menu.current?.open) return;
      const isOutside = event.type === "pointerdown" && !menu.current.contains(event.target as Node);
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      if (!isOutside && !isEscape) return;
      menu.current.open = false;
      if (isEscape) event.preventDefault();
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close, true);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close, true);
    };
  }, []);
  const earlier = visits.value.filter((one) => one.id !== report.value?.id);
  if (earlier.length === 0) return null;
  const go = (id: string) => (event: MouseEvent): void => {
    event.preventDefault();
    if (menu.current) menu.current.open = false;
    history.pushState(null, "", pathOf(id));
    void open(id);
  };
  return (
    <details class="menu" ref={menu}>
      <summary>
        Earlier<span class="badge">{earlier.length}</span>
      </summary>
      <ol class="menu-list" aria-label="Earlier explorations of this visit">
        {earlier.map((one) => (
          <li key={one.id}>
            <a href={pathOf(one.id)} onClick={go(one.id)}>
              <b>{one.title}</b>
              <time dateTime={new Date(one.at).toISOString()}>{new Date(one.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}</time>
              <span>{one.verdict}</span>
            </a>
          </li>
        ))}
      </ol>
    </details>
  );
}

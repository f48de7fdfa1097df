import { open, pathOf } from "../explore";
import { report } from "../state";
import { visits } from "../visits";
import { useMenu } from "./useMenu";

/** The explorations of this visit: a click goes back to one, as the browser's own way back does. */
export function Earlier() {
  const menu = useMenu();
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

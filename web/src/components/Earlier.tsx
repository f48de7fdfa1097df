import { open, pathOf } from "../explore";
import { report } from "../state";
import { forgetVisits, timeOf, visits } from "../visits";
import { useMenu } from "./useMenu";

/** The explorations of this browser: a click goes back to one, as the browser's own way back does. */
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
      <ol class="menu-list" aria-label="Earlier explorations">
        {earlier.map((one) => (
          <li key={one.id}>
            <a href={pathOf(one.id)} onClick={go(one.id)}>
              <b>{one.title}</b>
              <time dateTime={new Date(one.at).toISOString()}>{timeOf(one)}</time>
              <span>{one.verdict}</span>
            </a>
          </li>
        ))}
        <li>
          <button type="button" class="quiet" title="Empties this list. The explorations themselves stay where they are." onClick={forgetVisits}>Forget all</button>
        </li>
      </ol>
    </details>
  );
}

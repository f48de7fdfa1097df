import { useEffect, useState } from "preact/hooks";
import { type Child, getChildren, getExploration, whyNothingBeside } from "../../api";
import { idInPath, open, pathOf } from "../../explore";
import type { Report } from "../../report";
import { comparedWith, problem, report } from "../../state";
import { timeOf, visits } from "../../visits";

/** What was asked of a report that is done. */
export function useChildren({ id, status }: Report): Child[] {
  const [found, setFound] = useState<{ id: string; children: Child[] }>({ id: "", children: [] });
  useEffect(() => {
    if (!id || status === "running") return;
    getChildren(id).then(
      (children) => setFound({ id, children }),
      (error: Error) => (problem.value = error.message),
    );
  }, [id, status]);
  return found.id === id ? found.children : [];
}

/** A stored exploration, once it has come. */
export function useReport(id: string): Report | null {
  const [found, setFound] = useState<Report | null>(null);
  useEffect(() => {
    let isWanted = true;
    getExploration(id).then(
      (other) => isWanted && setFound(other),
      (error: unknown) => isWanted && (problem.value = whyNothingBeside(error)),
    );
    return () => {
      isWanted = false;
    };
  }, [id]);
  return found?.id === id ? found : null;
}

export function LinkTo({ id, children }: { id: string; children: string }) {
  const go = (event: MouseEvent): void => {
    event.preventDefault();
    history.pushState(null, "", pathOf(id));
    void open(id);
  };
  return (
    <a href={pathOf(id)} onClick={go}>
      {children}
    </a>
  );
}

/** The id in what was pasted: an id, or a link to an exploration. */
export function idIn(pasted: string): string | null {
  const text = pasted.trim();
  if (/^[\w-]{8,64}$/.test(text)) return text;
  try {
    return idInPath(new URL(text, "http://localhost").pathname);
  } catch {
    return null;
  }
}

/** Those that one may want beside it: what it is based on, what is based on it, and those of this browser. */
function offered(shown: Report, children: Child[]): { id: string; name: string }[] {
  const all = [
    ...(shown.based_on ? [{ id: shown.based_on, name: "the one that this is based on" }] : []),
    ...children.map((child) => ({ id: child.id, name: `what if: ${child.asked || child.id}` })),
    ...visits.value.map((visit) => ({ id: visit.id, name: `${visit.title}, ${timeOf(visit)}: ${visit.verdict}` })),
  ];
  return all.filter(({ id }, place) => id !== shown.id && all.findIndex((one) => one.id === id) === place);
}

const NAME_AT_MOST = 90;

/** With which exploration: one of those that are at hand, or a link or an id that is pasted. */
export function Picker({ shown }: { shown: Report }) {
  const children = useChildren(shown);
  const [pasted, setPasted] = useState("");
  const [isUnknown, setUnknown] = useState(false);
  const choices = offered(shown, children);
  const now = comparedWith.value ?? shown.based_on ?? "";
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const id = idIn(pasted);
    setUnknown(id === null);
    if (id !== null) comparedWith.value = id;
  };
  const swap = (): void => {
    const [here, there] = [report.value?.id, now];
    if (!here || !there) return;
    // The entry that is left keeps what it was compared with.
    history.pushState(null, "", pathOf(there) + location.search);
    comparedWith.value = here;
    void open(there);
  };
  return (
    <form class="filters compare-picker" aria-label="Compare" onSubmit={onSubmit}>
      <label class="check">
        Compare with
        <select value={now} onChange={(event) => (comparedWith.value = event.currentTarget.value || null)}>
          {!now && <option value="">choose an exploration</option>}
          {now && !choices.some(({ id }) => id === now) && <option value={now}>{now}</option>}
          {choices.map(({ id, name }) => (
            <option key={id} value={id}>
              {name.length > NAME_AT_MOST ? `${name.slice(0, NAME_AT_MOST)}…` : name}
            </option>
          ))}
        </select>
      </label>
      <input type="text" aria-label="Link or id of an exploration" placeholder="or paste a link or an id" value={pasted} onInput={(event) => setPasted(event.currentTarget.value)} />
      <button type="submit" disabled={pasted.trim() === ""}>Compare</button>
      {now && (
        <button type="button" onClick={swap} title="The exploration on screen becomes the first of the two">
          Swap
        </button>
      )}
      {comparedWith.value !== null && (
        <button type="button" onClick={() => (comparedWith.value = null)}>
          Stop comparing
        </button>
      )}
      {isUnknown && <span class="bad" role="alert">This is neither a link to an exploration nor an id.</span>}
    </form>
  );
}

import { useEffect, useRef } from "preact/hooks";
import { helpIsOpen, report } from "../state";

const KEYS: [string, string][] = [
  ["Ctrl+Enter, ⌘+Enter", "explore the snippet"],
  ["hover", "light the same thing in every pane: line, node, loop, kernel, decision"],
  ["click, Enter", "pin what is lit; the kernel that it became opens"],
  ["Esc", "release the pin, close this"],
  ["F6, Shift+F6", "next pane, pane before"],
  ["Tab", "next control; in the editor it indents, and Esc, then Tab, leaves it"],
  ["← →", "next tab; on a separator, resize"],
  ["?", "this help"],
];

export function Help() {
  const id = report.value?.id;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpIsOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpIsOpen.value]);
  return (
    <dialog class="help" ref={dialog} onClose={() => (helpIsOpen.value = false)} aria-labelledby="help-title">
      <h2 id="help-title">Reading the page</h2>
      <p>
        The answer is on top. On the left is your code; in the middle the graph that was captured from it, each node in the
        colour of the kernel that computes it; on the right those kernels; below, why they are what they are.
      </p>
      <dl>
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p>
        A time marked <em>predicted</em> comes from the cost model, one marked <em>measured</em> from a device. What is not
        known is not shown.
        {id && (
          <>
            {" "}
            The same report <a href={`/api/v1/explorations/${id}`}>as JSON</a> and <a href={`/api/v1/explorations/${id}.md`}>as text</a>.
          </>
        )}
      </p>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

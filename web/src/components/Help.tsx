import { useEffect, useRef } from "preact/hooks";
import { helpIsOpen, report } from "../state";

const KEYS: [string, [string, string][]][] = [
  [
    "Anywhere",
    [
      ["Ctrl Enter", "explore the snippet"],
      ["Esc", "one step back: the card, the selection, the drawer"],
      ["F6", "next pane; with Shift the pane before"],
      ["Tab", "next control"],
      ["?", "this list"],
    ],
  ],
  [
    "Editor",
    [
      ["Tab", "indent"],
      ["Esc, then Tab", "leave the editor"],
      ["Ctrl F", "search"],
    ],
  ],
  [
    "Map",
    [
      ["/", "search"],
      ["← ↑ → ↓", "along the edges"],
      ["Enter", "select"],
      ["Shift Enter", "ask why: the selected node and this one"],
      ["+, −", "show the operations of a kernel, close it"],
      ["j, k", "next round, round before"],
    ],
  ],
  [
    "Cards and lessons",
    [
      ["← ↑ → ↓", "on ⠿: move the card"],
      ["← →", "in a lesson: step back, next step"],
    ],
  ],
  [
    "Toolbar and separators",
    [
      ["← →", "next word; on a separator: resize"],
      ["Enter", "open or close the drawer"],
    ],
  ],
];

function Keys({ title, keys }: { title: string; keys: [string, string][] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

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
        A kernel is a function that the device runs over all elements of a tensor. Without a compiler, each operation is a
        kernel of its own, which reads from memory and writes its result back. Fusion makes one kernel of several operations, and
        what they pass on stays in registers.
      </p>
      <p>
        Your code is on the left. The map beside it has each operation in the colour of the kernel that computes it. A click
        selects, and the kernel opens on the right. Shift and a click on a second operation asks why the two are, or are not,
        in one kernel. The words at the bottom open the details.
      </p>
      <p>
        <em>Figures in italics are predicted</em> by the cost model, all others are counted or measured. A figure that is not
        known is a dash.
      </p>
      <div class="keys">
        {KEYS.map(([title, keys]) => (
          <Keys key={title} title={title} keys={keys} />
        ))}
      </div>
      <form method="dialog">
        <p>
          The <a href="/docs/">documentation</a> has first steps, guides and the API.
        </p>
        {id && (
          <p>
            This exploration <a href={`/api/v1/explorations/${id}`}>as JSON</a> or <a href={`/api/v1/explorations/${id}.md`}>as text</a>.
          </p>
        )}
        <button type="submit" autofocus>Close</button>
      </form>
    </dialog>
  );
}

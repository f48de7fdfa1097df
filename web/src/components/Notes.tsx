import { ref } from "../links";
import type { Report } from "../report";
import { wrongOf } from "../wrong";
import { Scroller } from "./Scroller";
import { WrongResults } from "./WrongResults";

export function Notes({ report }: { report: Report }) {
  const { error } = report;
  return (
    <Scroller label="Notes and output" class="notes">
      <div>
        <WrongResults wrong={[...wrongOf(report, "compiled"), ...wrongOf(report, "peer")]} />
        {report.notes.map((note, index) => (
          <p class="note" key={index} data-ref={note.line === null ? undefined : ref.line(note.line)}>
            {note.line !== null && <span class="chip">{`line ${note.line}`}</span>} {note.message}
          </p>
        ))}
        {report.notes.length === 0 && (
          <p class="note quiet">{report.status === "ok" ? "No notes: the snippet ran as written." : "No notes."}</p>
        )}
        {error?.traceback && (
          <details>
            <summary>Traceback</summary>
            <pre class="output">{error.traceback}</pre>
          </details>
        )}
      </div>
      <div>
        <h3>Printed by the snippet</h3>
        <pre class="output">{report.output || "(nothing)"}</pre>
      </div>
    </Scroller>
  );
}

import * as format from "../../format";
import type { Report } from "../../report";
import { Scroller } from "../Scroller";
import { Table } from "./Table";

function environmentFacts(report: Report): [string, string][] {
  return Object.entries(report.environment)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => [name.replaceAll("_", " "), format.plain(value)]);
}

/** Seen from outside of the snippet's process, which is why it stands apart. */
function observedFacts(report: Report): [string, string][] {
  const { contradictions, isolation, ...seen } = report.observed ?? { contradictions: [], isolation: [] };
  const facts = Object.entries(seen).filter(([, value]) => value !== null && value !== "");
  return facts.map(([name, value]) => [name.replaceAll("_", " "), format.plain(value)]);
}

function Share({ ms, of: longest }: { ms: number; of: number }) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect x={0} y={1} width={Math.max(0.5, (100 * ms) / longest)} height={6} />
    </svg>
  );
}

export function Stages({ report }: { report: Report }) {
  const longest = Math.max(...report.stages.map((stage) => stage.ms), 1);
  return (
    <Scroller label="Stages" class="stages">
      <Table
        id="stages"
        label="Stages"
        rows={report.stages}
        keyOf={(stage) => stage.name}
        isCompact
        columns={[
          { id: "stage", head: "stage", cell: (stage) => stage.name },
          { id: "time", head: "time", isNumber: true, by: (stage) => stage.ms, cell: (stage) => format.milliseconds(stage.ms) },
          { id: "bar", head: "share", class: "bar-column", cell: (stage) => <Share ms={stage.ms} of={longest} /> },
          { id: "status", head: "status", by: (stage) => stage.status, cell: (stage) => <span class={`stage-chip stage-${stage.status}`}>{stage.status}</span> },
          { id: "message", head: "", class: "message", cell: (stage) => stage.message },
        ]}
        foot={
          report.status === "running" ? (
            <tr>
              <th scope="row">…</th>
              <td colSpan={4}>running</td>
            </tr>
          ) : undefined
        }
      />
      <dl class="facts environment-facts">
        {environmentFacts(report).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {report.observed && (
        <>
          <h3>What the service saw</h3>
          {report.observed.contradictions.map((sentence) => (
            <p class="problem" key={sentence}>
              {sentence}
            </p>
          ))}
          <dl class="facts environment-facts">
            {observedFacts(report).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </Scroller>
  );
}

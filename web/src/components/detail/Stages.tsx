import * as format from "../../format";
import type { Report } from "../../report";
import { Facts } from "../Facts";
import { Scroller } from "../Scroller";
import { Table } from "./Table";

function written(name: string, value: unknown): string {
  if (typeof value !== "number") return format.plain(value);
  if (name.endsWith("_bytes")) return format.bytes(value);
  return name.endsWith("_seconds") ? format.milliseconds(1000 * value) : format.plain(value);
}

/** Names without their unit, which the value has. */
function factsOf(from: object): [string, string][] {
  return Object.entries(from)
    .filter(([, value]) => value !== null && value !== "" && typeof value !== "object")
    .map(([name, value]) => [name.replace(/_(bytes|seconds)$/, "").replaceAll("_", " "), written(name, value)]);
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
    <Scroller label="Stages and where they ran" class="stages">
      <Table
        id="stages"
        label="Stages"
        rows={report.stages}
        keyOf={(stage) => stage.name}
        isCompact
        columns={[
          { id: "stage", head: "stage", cell: (stage) => stage.name },
          { id: "time", head: "time", isNumber: true, by: (stage) => stage.ms, cell: (stage) => format.milliseconds(stage.ms) },
          { id: "bar", head: "share", isExtra: true, class: "bar-column", cell: (stage) => <Share ms={stage.ms} of={longest} /> },
          { id: "status", head: "status", by: (stage) => stage.status, cell: (stage) => <span class={`stage-chip stage-${stage.status}`}>{stage.status}</span> },
          { id: "message", head: "message", class: "message", cell: (stage) => stage.message },
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
      <section>
        <h3 class="view-heading">Where it ran</h3>
        <Facts facts={factsOf(report.environment)} />
      </section>
      {report.observed && (
        <section>
          <h3 class="view-heading">What the service saw from outside</h3>
          {report.observed.contradictions.map((sentence) => (
            <p class="problem" key={sentence}>
              {sentence}
            </p>
          ))}
          <Facts facts={[...factsOf(report.observed), ["confined by", report.observed.isolation.join("; ")]]} />
        </section>
      )}
    </Scroller>
  );
}

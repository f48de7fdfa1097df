import * as format from "../../format";
import type { Report } from "../../report";
import { Scroller } from "../Scroller";

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

export function Stages({ report }: { report: Report }) {
  const longest = Math.max(...report.stages.map((stage) => stage.ms), 1);
  return (
    <Scroller label="Stages" class="stages">
      <table class="compact">
        <thead>
          <tr>
            <th scope="col">stage</th>
            <th scope="col">status</th>
            <th scope="col" class="number">time</th>
            <td class="bar-column" />
            <th scope="col">message</th>
          </tr>
        </thead>
        <tbody>
          {report.stages.map((stage) => (
            <tr key={stage.name}>
              <th scope="row">{stage.name}</th>
              <td>
                <span class={`stage-chip stage-${stage.status}`}>{stage.status}</span>
              </td>
              <td class="number">{format.milliseconds(stage.ms)}</td>
              <td>
                <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect x={0} y={1} width={Math.max(0.5, (100 * stage.ms) / longest)} height={6} />
                </svg>
              </td>
              <td class="message">{stage.message}</td>
            </tr>
          ))}
          {report.status === "running" && (
            <tr>
              <th scope="row">…</th>
              <td colSpan={4} class="quiet">
                running
              </td>
            </tr>
          )}
        </tbody>
      </table>
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

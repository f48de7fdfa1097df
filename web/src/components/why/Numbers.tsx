import type { Answer } from "../../api";
import * as format from "../../format";
import type { Decision, Graph, Report } from "../../report";
import { predictedFor } from "../../state";
import { stakeOf } from "../../stake";
import { isWrong } from "../../wrong";
import { kernelTimes } from "./answers";

interface Fact {
  name: string;
  value: preact.ComponentChildren;
}

/** Why the predicted time that stands with a kernel is less. */
export const WITH_GAPS = "with the gaps before and after a kernel and what timing it adds, which the time of a kernel leaves out";

function readable(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map(format.plain).join(", ");
  if (typeof value !== "number") return format.plain(value);
  if (name.startsWith("bytes")) return format.bytes(value);
  if (name.endsWith("_us")) return format.microseconds(value);
  return value.toLocaleString("en-US");
}

function factsOf(answer: Answer, decision: Decision | null, graph: Graph, report: Report): Fact[] {
  const facts: Fact[] = [];
  const score = decision?.score;
  const [fused, unfused] = [score?.fused_us, score?.unfused_us];
  if (fused != null || unfused != null) {
    const times = [fused != null && `one kernel ${format.microseconds(fused)}`, unfused != null && `two kernels ${format.microseconds(unfused)}`].filter(Boolean).join(", ");
    facts.push({ name: `predicted for ${predictedFor.value}`, value: <em title={`By the cost model, ${WITH_GAPS}`}>{`${times}, with launch gaps`}</em> });
  } else {
    const predicted = kernelTimes(answer, graph, "predicted_us");
    if (predicted !== null) facts.push({ name: `predicted for ${predictedFor.value}`, value: <em>{`as they are, ${format.microseconds(predicted)}`}</em> });
  }
  const measured = isWrong(report) || graph.disturbed ? null : kernelTimes(answer, graph, "measured_us");
  if (measured !== null) {
    const device = report.timing?.device === "cpu" || !report.timing?.device ? report.environment.device_name || report.environment.device : report.timing.device;
    facts.push({ name: `measured on ${device}`, value: `as they are, ${format.microseconds(measured)}` });
  }
  if (decision && stakeOf(decision) > 0) {
    const isBound = decision.verdict === "refused" && score?.fused_us == null;
    const bytes = format.bytes(stakeOf(decision));
    facts.push({ name: decision.verdict === "fused" ? "bytes saved" : "bytes at stake", value: isBound ? `at most ${bytes}` : bytes });
  }
  if (decision?.change) facts.push({ name: "change of loops", value: decision.change });
  return facts;
}

/** Predicted and measured times, and the bytes that it is about. */
export function Numbers({ answer, decision, graph, report }: { answer: Answer; decision: Decision | null; graph: Graph; report: Report }) {
  const facts = factsOf(answer, decision, graph, report);
  const more = Object.entries(decision?.numbers ?? {}).map(([name, value]) => [name.replace(/_us$/, ", predicted").replaceAll("_", " "), readable(name, value), name.endsWith("_us")] as const);
  return (
    <>
      {facts.length > 0 && (
        <dl class="why-facts">
          {facts.map(({ name, value }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {more.length > 0 && (
        <details>
          <summary>Numbers of the reason</summary>
          <dl class="why-facts">
            {more.map(([name, value, isPredicted]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{isPredicted ? <em>{value}</em> : value}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </>
  );
}

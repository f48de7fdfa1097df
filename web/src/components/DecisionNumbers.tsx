import * as format from "../format";
import type { Decision } from "../report";

interface Sides {
  name: string;
  a: string;
  b: string;
}

/** `space_a` and `space_b` are one row of two sides; other numbers are about the pair. */
function split(numbers: Record<string, unknown>): { sides: Sides[]; others: [string, string][] } {
  const sides: Sides[] = [];
  const others: [string, string][] = [];
  for (const [key, value] of Object.entries(numbers)) {
    const name = key.replace(/_[ab]$/, "");
    if (key.endsWith("_a") && `${name}_b` in numbers) {
      sides.push({ name, a: readable(name, value), b: readable(name, numbers[`${name}_b`]) });
    } else if (!(key.endsWith("_b") && `${name}_a` in numbers)) {
      others.push([key.replace(/_us$/, ", predicted").replaceAll("_", " "), readable(key, value)]);
    }
  }
  return { sides, others };
}

function readable(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map(format.plain).join(", ");
  if (typeof value !== "number") return format.plain(value);
  if (name.startsWith("bytes")) return format.bytes(value);
  if (name.endsWith("_us")) return format.microseconds(value);
  return value.toLocaleString("en-US");
}

/** What the verdict rests on: both sides beside each other, and what differs marked where that may be why not. */
export function DecisionNumbers({ decision }: { decision: Decision }) {
  const { sides, others } = split(decision.numbers);
  const isRefused = decision.verdict === "refused";
  return (
    <div class="why">
      {sides.length > 0 && (
        <table class="compact">
          <thead>
            <tr>
              <td />
              <th scope="col">{decision.a}</th>
              <th scope="col">{decision.b}</th>
            </tr>
          </thead>
          <tbody>
            {sides.map(({ name, a, b }) => (
              <tr key={name} class={isRefused && a !== b && name !== "group" ? "differs" : ""}>
                <th scope="row">{name}</th>
                <td>{a}</td>
                <td>{b}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl class="facts">
        {others.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

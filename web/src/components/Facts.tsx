import type { ComponentChildren } from "preact";

/** Names with their values, side by side; `children` are more of the same. */
export function Facts({ facts, children }: { facts: (readonly [string, string])[]; children?: ComponentChildren }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      {children}
    </dl>
  );
}

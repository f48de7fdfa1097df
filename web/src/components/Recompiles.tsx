import { refOfLine } from "../links";
import type { Recompile } from "../report";
import { GraphLinks } from "./GraphLinks";
import { Worded } from "./Worded";

export function Recompiles({ recompiles }: { recompiles: Recompile[] }) {
  return (
    <>
      {recompiles.map((found, index) => (
        <div class="finding" key={index} data-ref={refOfLine(found.line)} tabIndex={0}>
          <p>
            <strong>{`${found.function} compiled again`}</strong>
            {found.line !== null && <span class="chip">{`line ${found.line}`}</span>}
          </p>
          <p>
            <Worded text={found.reason} />
          </p>
          <p class="quiet">
            {found.graph !== null && <GraphLinks before="made" names={[found.graph]} />}
            {found.symbolic.length > 0 ? (
              <>
                {", which leaves open "}
                <Worded text={found.symbolic.map((name) => `\`${name}\``).join(", ")} />
              </>
            ) : (
              ", for this value alone"
            )}
          </p>
        </div>
      ))}
    </>
  );
}

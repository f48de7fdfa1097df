import { refOfLine } from "../links";
import type { GraphBreak } from "../report";
import { pytorchPage } from "../sanitise";
import { GraphLinks } from "./GraphLinks";
import { Worded } from "./Worded";

function Finding({ found }: { found: GraphBreak }) {
  const page = pytorchPage(found.url);
  return (
    <div class="finding finding-break" data-ref={refOfLine(found.line)} tabIndex={0}>
      <p>
        <strong>Graph break</strong>
        {found.line !== null && <span class="chip">{`line ${found.line}`}</span>}
        {found.title}
        {found.count > 1 && <span class="quiet">{` met ${found.count} times`}</span>}
      </p>
      <p class="quiet">
        <Worded text={found.reason} />
      </p>
      {found.remedy && (
        <p class="remedy">
          <span class="visually-hidden">Remedy: </span>
          {found.remedy}
        </p>
      )}
      <p class="quiet">
        <GraphLinks before="ended" names={found.before} />
        {found.before.length > 0 && found.after.length > 0 && " → "}
        <GraphLinks before="went on in" names={found.after} />
      </p>
      {found.kind && (
        <p class="quiet small">
          {"Dynamo: "}
          {page ? (
            <a href={page} target="_blank" rel="noreferrer">
              {found.kind}
            </a>
          ) : (
            found.kind
          )}
        </p>
      )}
      {found.hint && (
        <details class="small hints">
          <summary>Dynamo's hints</summary>
          <Worded text={found.hint} />
        </details>
      )}
    </div>
  );
}

export function Breaks({ breaks }: { breaks: GraphBreak[] }) {
  return (
    <>
      {breaks.map((found) => (
        <Finding key={`${found.line} ${found.kind}`} found={found} />
      ))}
    </>
  );
}

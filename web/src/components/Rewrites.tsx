import { refOfLine } from "../links";
import type { Rewrite } from "../report";

/** What was replaced before the graph was compiled, or nearly was, and why not. */
export function Rewrites({ rewrites }: { rewrites: Rewrite[] }) {
  return (
    <>
      {rewrites.map((found, index) => (
        <div class="finding" key={index} data-ref={refOfLine(found.lines[found.lines.length - 1] ?? null)} tabIndex={0}>
          <p>
            <strong>{`${found.what} ${found.verdict === "replaced" ? "became one library call" : "was kept as it is written"}`}</strong>
            {found.lines.length > 0 && <span class="chip">{`lines ${found.lines.join(", ")}`}</span>}
          </p>
          <p>{found.message}</p>
          {found.detail && <p class="quiet">{found.detail}</p>}
          {found.remedy && <p>{found.remedy}</p>}
        </div>
      ))}
    </>
  );
}

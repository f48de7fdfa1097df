import { refOfLine } from "../links";
import type { Rewrite } from "../report";

const REPLACED: Record<Rewrite["what"], string> = {
  attention: "attention became one library call",
  mask: "the mask of attention was simplified",
  heads: "repeated heads are read in place",
  "one-hot sum": "a sum of rows with few numbers became the sum of these",
  "picked numbers": "numbers picked from rows get their gradients row by row",
  "pooling places": "positions of maxima are saved in four bytes each",
};

const KEPT: Record<Rewrite["what"], string> = {
  attention: "attention was kept as written",
  mask: "the mask of attention was kept as written",
  heads: "repeated heads are copied",
  "one-hot sum": "a sum was kept as written",
  "picked numbers": "gradients of picked numbers are added as written",
  "pooling places": "positions of maxima are saved as written",
};

/** What was replaced before the graph was compiled, or nearly was, and why not. */
export function Rewrites({ rewrites }: { rewrites: Rewrite[] }) {
  return (
    <>
      {rewrites.map((found, index) => (
        <div class="finding" key={index} data-ref={refOfLine(found.lines[found.lines.length - 1] ?? null)} tabIndex={0}>
          <p>
            <strong>{(found.verdict === "replaced" ? REPLACED : KEPT)[found.what]}</strong>
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

import type { Report } from "../../report";
import { Empty, Scroller } from "../Scroller";
import { documentOf, rawOf, recordedOf, reproducerOf, save, traceOf } from "./exports";
import { Name } from "../Name";
import { KernelTag } from "../KernelTag";

interface Way {
  name: string;
  about: string;
  href: string;
  file?: string;
}

function waysOf(report: Report): Way[] {
  const { id } = report;
  return [
    { name: "One HTML file", about: "The answer, the kernels as a drawing and as code, every decision with its reason. It stands alone, without a script.", href: documentOf(id, "html"), file: `fusionscope-${id}.html` },
    { name: "Markdown", about: "The answer, kernels and decisions as text.", href: documentOf(id, "md"), file: `fusionscope-${id}.md` },
    ...(report.trace.length === 0 ? [] : [{ name: "Profiler's trace", about: "One call of eager and one of our kernels as torch's profiler recorded them, for Perfetto. It takes time of its own.", href: recordedOf(id), file: `fusionscope-${id}.profiler.json` }]),
    { name: "Raw JSON", about: "All data behind this page.", href: rawOf(id), file: `fusionscope-${id}.json` },
  ];
}

function Trace({ report }: { report: Report }) {
  const trace = traceOf(report);
  return (
    <li>
      <button type="button" disabled={!trace} onClick={() => trace && save(`fusionscope-${report.id}.trace.json`, JSON.stringify(trace))}>
        Trace of the times
      </button>
      <span class="quiet">{trace ? "What was measured, for Perfetto or chrome://tracing. Kernels were timed alone: gaps between them are not known." : "Nothing was measured."}</span>
    </li>
  );
}

/** One file for each generated kernel: it makes inputs, launches the kernel, checks it and times it. */
function Kernels({ report }: { report: Report }) {
  const many = report.graphs.length > 1;
  return (
    <>
      {report.graphs.map((graph) => {
        const made = graph.kernels.map((kernel, place) => ({ kernel, place })).filter(({ kernel }) => kernel.kind !== "extern");
        return made.length === 0 ? null : (
          <div key={graph.name}>
            {many && <h3 class="view-heading">{graph.name}</h3>}
            <ul class="kernel-files">
              {made.map(({ kernel, place }) => (
                <li key={place}>
                  <KernelTag place={place} />
                  <a href={reproducerOf(report, graph, kernel)} download>
                    <Name text={kernel.name} />
                  </a>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </>
  );
}

/** What of this exploration can be taken along. */
export function Export({ report }: { report: Report }) {
  if (!report.id || report.status === "running") return <Empty>Files are available when the exploration is done.</Empty>;
  return (
    <Scroller label="Files" class="export">
      <div>
        <h3 class="view-heading">The whole exploration</h3>
        <ul class="files">
          {waysOf(report).map(({ name, about, href, file }) => (
            <li key={name}>
              <a href={href} download={file}>
                {name}
              </a>
              <span class="quiet">{about}</span>
            </li>
          ))}
          <Trace report={report} />
        </ul>
      </div>
      <div>
        <h3 class="view-heading">A kernel that runs alone, as Python: inputs, launch, check, time</h3>
        <Kernels report={report} />
      </div>
    </Scroller>
  );
}

import { graphIndex, report } from "../state";

/** The graphs of these names, each a button that shows it in every pane. */
export function GraphLinks({ before, names }: { before: string; names: string[] }) {
  const graphs = report.value?.graphs ?? [];
  if (names.length === 0) return null;
  return (
    <>
      {`${before} `}
      {names.map((name) => {
        const place = graphs.findIndex((graph) => graph.name === name);
        return (
          <button
            type="button"
            class="graph-link"
            key={name}
            disabled={place < 0}
            aria-pressed={place === graphIndex.value}
            onClick={() => (graphIndex.value = place)}
            title="Show this graph"
          >
            {name}
          </button>
        );
      })}
    </>
  );
}

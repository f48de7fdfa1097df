import type { Comparison as Beside, Figure, KernelSum } from "../api";
import * as format from "../format";
import { Head } from "./Head";

function value(figure: Figure, number: number | null): string {
  if (number === null) return "";
  if (figure.unit === "bytes") return format.bytes(number);
  if (figure.unit === "us") return format.microseconds(number);
  if (figure.unit === "ms") return format.milliseconds(number);
  return number.toLocaleString("en-US");
}

function change(figure: Figure): string {
  if (figure.change === null) return "";
  if (figure.is_noise) return "no measurable difference";
  if (figure.change === 0) return "the same";
  const sign = figure.change > 0 ? "+" : "−";
  const share = figure.ratio === null ? "" : ` (${sign}${Math.abs(100 * (figure.ratio - 1)).toFixed(1)} %)`;
  return `${sign}${value(figure, Math.abs(figure.change))}${share}`;
}

function preposition(kind: Figure["kind"]): string {
  return kind === "predicted" ? "for" : "on";
}

function FigureRow({ figure }: { figure: Figure }) {
  const cell = `number ${figure.kind}`;
  return (
    <tr>
      <th scope="row">{figure.name}</th>
      <td>{figure.device ? `${figure.kind} ${preposition(figure.kind)} ${figure.device}` : figure.kind}</td>
      <td class={cell}>{value(figure, figure.before)}</td>
      <td class={cell}>{value(figure, figure.after)}</td>
      <td class={cell}>{change(figure)}</td>
    </tr>
  );
}

function Kernels({ kernels }: { kernels: KernelSum }) {
  const times = [
    kernels.predicted_us !== null && `predicted ${format.microseconds(kernels.predicted_us)}`,
    kernels.measured_us !== null && `measured ${format.microseconds(kernels.measured_us)}`,
  ];
  return (
    <td>
      {kernels.names.map((name, place) => (
        <div key={place}>
          <code>{name}</code>
        </div>
      ))}
      <span class="quiet">{[format.bytes(kernels.bytes), ...times].filter(Boolean).join(", ")}</span>
    </td>
  );
}

/** Two explorations of one snippet: counted, predicted and measured figures in rows of their own. */
export function Comparison({ beside }: { beside: Beside }) {
  return (
    <div class="comparison">
      <p class="comparison-verdict" data-testid="comparison-verdict" data-tone={beside.is_wrong ? "bad" : undefined}>
        {beside.verdict}
      </p>
      <table>
        <Head columns={["figure", "how it is known", "the first", "what if", "change"]} numbers={["the first", "what if", "change"]} />
        <tbody>
          {beside.figures.filter(({ before, after }) => before !== null || after !== null).map((figure) => (
            <FigureRow key={`${figure.kind} ${figure.name}`} figure={figure} />
          ))}
        </tbody>
      </table>
      {beside.kernels.length > 0 && (
        <table>
          <Head columns={["kernels of the first", "became"]} />
          <tbody>
            {beside.kernels.map(({ graph, before, after }) => (
              <tr key={`${graph} ${before.names.join()}`}>
                <Kernels kernels={before} />
                <Kernels kernels={after} />
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

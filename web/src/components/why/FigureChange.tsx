import { beside, report } from "../../state";
import { besideFigure, changeOf } from "./changes";

/** Of a figure of the answer bar: what it changed beside the exploration of the same snippet that this one is compared
 * with. What is within the noise is told where there is room for a sentence: in the card and in the comparison. */
export function FigureChange({ id }: { id: string }) {
  const found = beside.value;
  if (!found?.is_same_source || found.after !== report.value?.id) return null;
  const figure = besideFigure(found, id);
  const text = figure && changeOf(figure, false);
  if (!figure || !text || figure.change === 0 || figure.is_noise) return null;
  const tone = (figure.change ?? 0) < 0 ? "less" : "more";
  return (
    <span class="figure-change" data-tone={tone} title={`Compared with the other exploration${figure.device ? `, ${figure.kind} ${figure.kind === "predicted" ? "for" : "on"} ${figure.device}` : ""}`}>
      {` ${text}`}
    </span>
  );
}

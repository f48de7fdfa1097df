/** A wrong result has no speed: what the page says in place of its times. */
import { milliseconds } from "./format";
import type { Report, WrongResult } from "./report";

/** The wrong outputs of a contestant. A report that was stored before they were told has none. */
export function wrongOf({ wrong_results }: Pick<Report, "wrong_results">, contestant: WrongResult["contestant"]): WrongResult[] {
  return (wrong_results ?? []).filter((one) => one.contestant === contestant);
}

export const isWrong = (report: Pick<Report, "wrong_results">): boolean => wrongOf(report, "compiled").length > 0;

/** What stands under the times in the answer bar; whether they differ is in the verdict below. */
export function timeLabel(report: Report): string {
  const { peer_ms } = report.summary;
  const peer = wrongOf(report, "peer").length > 0 ? "the peer's result is wrong" : peer_ms === null ? null : `peer ${milliseconds(peer_ms)}`;
  return [isWrong(report) ? "eager; a wrong result has no time" : "eager → compiled", peer].filter((part) => part !== null).join(", ");
}

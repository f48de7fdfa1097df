/** What came of an exploration, in a sentence. Pure. */
import type { Report } from "./report";
import { isWrong } from "./wrong";

const STATUS_WORDS: Record<Exclude<Report["status"], "ok" | "wrong_result" | "running">, string> = {
  user_error: "the snippet failed",
  timeout: "out of time",
  out_of_memory: "out of memory",
  crashed: "the process crashed",
  cancelled: "stopped",
  dropped: "nobody waited for it",
};

/** How it ended, where it did not end well; of a wrong result the verdict speaks. */
export function statusOf({ status }: Pick<Report, "status">): string {
  return status in STATUS_WORDS ? STATUS_WORDS[status as keyof typeof STATUS_WORDS] : "";
}

export function verdictOf(shown: Report): string {
  const { error } = shown;
  if (!error || isWrong(shown)) return shown.summary.verdict;
  const place = error.line === null ? "" : `Line ${error.line}: `;
  const [said = ""] = error.message.split("\n");
  return `${place}${said}${/[.!?:]$/.test(said) ? "" : "."}`;
}

/** As a screen reader says it. */
export function announcementOf(shown: Report): string {
  const status = statusOf(shown);
  return status ? `${status[0]?.toUpperCase()}${status.slice(1)}. ${verdictOf(shown)}` : verdictOf(shown);
}

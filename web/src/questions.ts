/** Questions about a report: as the address carries them, what gives their answer away, and whether one is right. */
import type * as api from "./api";
import type { FxNode, Graph, Report } from "./report";

const LONGEST_QUESTION = 400;

const KINDS: readonly api.QuestionKind[] = ["number", "choice", "line", "node"];

/** A question that somebody asked about an exploration, as the address carries it; null for what is none. */
export function questionIn(found: string): api.Question | null {
  try {
    const { text: asked, kind, answer, unit = "", choices = [] } = JSON.parse(found) as Partial<api.Question>;
    const isText = (value: unknown): value is string => typeof value === "string" && value.length <= LONGEST_QUESTION;
    if (!isText(asked) || !isText(answer) || !isText(unit) || !asked.trim() || !answer.trim()) return null;
    if (!kind || !KINDS.includes(kind) || !Array.isArray(choices) || choices.length > 8) return null;
    if (!choices.every((choice) => isText(choice?.value) && isText(choice?.label))) return null;
    return { text: asked, kind, answer, unit, choices };
  } catch {
    return null;
  }
}

/**
 * What of the page gives the answer away that a path leads to: "all" where the picture itself does, as it shows which
 * graphs there are; "kernels" where the operations may stay. What is within one kernel or one plan of memory, no map shows.
 */
export function givenAwayBy(answer: string): "all" | "kernels" | "nothing" {
  if (/^(graphs \||breaks)/.test(answer)) return "all";
  return /kernels($| )|decisions|refusals|removed|loops|layouts|backward/.test(answer) ? "kernels" : "nothing";
}

const guessed = new WeakMap<Report, Report>();

/** A report as it is while one guesses: operations, and nothing that the compiler made of them. */
export function withoutKernels(shown: Report): Report {
  let known = guessed.get(shown);
  if (!known) {
    const alive = (node: FxNode): FxNode => (node.dead ? { ...node, dead: false } : node);
    const graphs = shown.graphs.map((graph): Graph => ({
      ...graph, fx: graph.fx.map(alive), aten: graph.aten.map(alive), kernels: [], decisions: [], refusals: [], rounds: [], traffic: null,
    }));
    guessed.set(shown, (known = { ...shown, graphs, peer: null }));
  }
  return known;
}

/** Of a value of the report: the answer in words. */
export function shownValue(value: api.ReportValue["value"], unit = ""): string {
  if (Array.isArray(value)) return value.map((one) => shownValue(one)).join(", ");
  if (typeof value === "number") {
    const figure = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
    return unit ? `${figure} ${value === 1 ? unit.replace(/s$/, "") : unit}` : figure;
  }
  return value === null ? "–" : String(value);
}

/** Whether an answer is right. Of several values each is; a number counts to the digits that a person writes. */
export function isRight(given: string, question: api.Question, value: api.ReportValue["value"]): boolean {
  const right = Array.isArray(value) ? value : [value];
  const said = given.trim();
  if (question.kind === "number") {
    const stated = Number(said.replace(/,/g, ""));
    return said !== "" && right.some((one) => typeof one === "number" && Math.abs(one - stated) <= Math.abs(one) * 0.005);
  }
  return right.some((one) => String(one).toLowerCase() === said.toLowerCase());
}

const WORDS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/** A number of the text that is another one in the report on screen, as on another device; null where it holds. */
export function differsHere(claim: api.Claim, found: api.ReportValue | undefined): string | null {
  if (claim.kind !== "report" || typeof found?.value !== "number") return null;
  const [written] = /\d[\d,]*(?:\.\d+)?/.exec(claim.text) ?? [];
  const word = WORDS.findIndex((one) => new RegExp(`\\b${one}\\b`, "i").test(claim.text));
  const stated = written ? Number(written.replace(/,/g, "")) : word + 2;
  const digits = written?.split(".")[1]?.length ?? 0;
  return Math.abs(found.value - stated) <= 0.5 / 10 ** digits ? null : `“${claim.text}” is ${shownValue(found.value)} here`;
}

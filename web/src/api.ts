/** The HTTP API, and nothing else: no state is kept here. */
import type { Parts } from "./parts";
import type { Decision, Report } from "./report";
import type { SweepRequest } from "./sweep";

const API = "/api/v1";

export interface InputSpec {
  shape: number[];
  dtype: string;
}

/** Left out means: as the server's defaults have it. */
export interface ExplorationRequest {
  source: string;
  entry?: string;
  inputs?: InputSpec[];
  device?: string;
  target?: string;
  peer?: boolean;
  peer_mode?: string;
  contestants?: string[];
  training?: boolean;
  trace?: boolean;
  dynamic?: boolean;
  mode?: string;
  cuda_graphs?: string;
  seed?: number;
  timing?: { enabled?: boolean; cold_l2?: boolean; min_runs?: number };
  sweep?: SweepRequest;
  cache?: "use" | "refresh";
  force?: [string, string][];
  forbid?: [string, string][];
  rules_off?: string[];
  largest_group?: number | null;
  device_model?: string | null;
  based_on?: string;
}

export interface Example {
  name: string;
  title: string;
  lesson: string;
  /** The lesson that goes on from it. */
  lesson_name: string | null;
  source: string;
}

export interface Reason {
  id: string;
  family: string;
  sentence: string;
}

export interface ReasonPage extends Reason {
  /** Markdown. */
  page: string;
}

/** Why two nodes are, or are not, in one kernel. */
export interface Answer {
  graph: string;
  a: string;
  b: string;
  verdict: "fused" | "refused" | "never considered";
  reason: string;
  message: string;
  would_fuse_if: string;
  kernels: string[];
  lines: number[];
  decisions: Decision[];
}

/** One figure of two explorations; null where it is not known. */
export interface Figure {
  name: string;
  kind: "counted" | "predicted" | "measured";
  unit: "" | "bytes" | "us" | "ms";
  device: string;
  before: number | null;
  after: number | null;
  change: number | null;
  ratio: number | null;
  is_noise: boolean;
}

export interface KernelSum {
  names: string[];
  /** Places among the kernels of their graph. */
  places: number[];
  bytes: number;
  predicted_us: number | null;
  measured_us: number | null;
}

/** Kernels that hold the same nodes in both explorations. */
export interface KernelMatch {
  graph: string;
  /** Its name in the second exploration; null where only the first has it. */
  graph_after: string | null;
  nodes: string[];
  relation: "same" | "split" | "merged" | "regrouped" | "only before" | "only after";
  before: KernelSum;
  after: KernelSum;
}

/** An exploration beside another one: the one that it is based on, or any other. */
export interface Comparison {
  before: string;
  after: string;
  options: { name: string; before: unknown; after: unknown }[];
  is_same_source: boolean;
  /** What else differs, such as the device: to be read before any figure. */
  differences: string[];
  figures: Figure[];
  kernels: KernelMatch[];
  unchanged: KernelMatch[];
  /** A compiled result of one of the two is wrong. It has no times. */
  is_wrong: boolean;
  verdict: string;
}

/** An exploration that is based on another one; `asked` says what it asks to be different. */
export interface Child {
  id: string;
  status: string;
  asked: string;
}

/** What an exploration may ask to be decided otherwise. */
export interface Choices {
  rules: string[];
  device_models: string[];
  largest_group: number;
}

/** `worker` is what explorations run on, as declared: it says nothing of whether a worker is there. */
export interface Version {
  compiler: string;
  worker: { torch: string; triton: string | null; device: string; device_name: string };
}

export const TOO_MANY = 429;

export type QuestionKind = "number" | "choice" | "line" | "node";

/** What is to be predicted; `answer` is a path into the report. */
export interface Question {
  text: string;
  kind: QuestionKind;
  unit: string;
  choices: { value: string; label: string }[];
  answer: string;
}

/** A number that a lesson's text states, and where it comes from. */
export interface Claim {
  text: string;
  kind: "report" | "program" | "other";
  path: string;
}

export interface LessonStep {
  title: string;
  text: string;
  source: string;
  options: Record<string, unknown>;
  view: string;
  question: Question | null;
  reveal: string;
  reveal_view: string;
  claims: Claim[];
}

export interface LessonHead {
  name: string;
  title: string;
  idea: string;
  minutes: number;
  steps: number;
}

/** What a program of a lesson came to on a GPU. */
export interface RecordedFigures {
  eager_kernels: number | null;
  kernels: number | null;
  eager_ms: number | null;
  compiled_ms: number | null;
}

export interface Lesson extends Omit<LessonHead, "steps"> {
  steps: LessonStep[];
  read_next: { title: string; kind: "lesson" | "reason" | "document"; name: string }[];
  recorded: { device: string; torch: string; triton: string | null; steps: (RecordedFigures | null)[] }[];
}

export interface Term {
  words: string[];
  meaning: string;
}

/** What a path leads to in a report, or why it leads nowhere. */
export interface ReportValue {
  path: string;
  value: number | string | boolean | null | (number | string | boolean | null)[];
  problem: string | null;
}

/** What went wrong with a request, in words for the person at the page. Status 0: nothing answered. */
export class ServiceError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }

  /** The server is not there, or what stands before it does not reach it: asking again may help. */
  get isGone(): boolean {
    return [0, 502, 504].includes(this.status);
  }
}

const OTHER_NOT_THERE = "There is no such exploration to compare with. It may have been removed, or its link may be incomplete.";

/** Why there is nothing to compare with, for a reader: the API's own words are for programs. */
export function whyNothingBeside(error: unknown): string {
  if (error instanceof ServiceError && error.status === 404) return OTHER_NOT_THERE;
  return error instanceof Error ? error.message : String(error);
}

async function call<Answer>(path: string, init?: RequestInit): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(API + path, { ...init, headers: { accept: "application/json", ...init?.headers } });
  } catch {
    throw new ServiceError(0, "The server does not answer.");
  }
  if (!response.ok) throw new ServiceError(response.status, await problemOf(response));
  return response.status === 204 ? (undefined as Answer) : ((await response.json()) as Answer);
}

interface FieldProblem {
  where: string;
  message: string;
}

const FIELD_NAMES: Record<string, string> = {
  source: "the snippet", inputs: "the inputs", entry: "the name of the function", seed: "the seed", target: "the GPU", sweep: "the sizes of the sweep",
  force: "the pairs to fuse", forbid: "the pairs to keep apart", rules_off: "the rules that are off", largest_group: "the largest group", timing: "timing",
};

/** A field that the server refuses, in words: "The snippet is not accepted: …". */
export function sentenceOf({ where, message }: FieldProblem): string {
  const [, field = "", ...inside] = where.split(".");
  const name = FIELD_NAMES[field] ?? (field ? `“${field.replaceAll("_", " ")}”` : "the request");
  const place = inside.filter((part) => /^\d+$/.test(part)).map((part) => ` (number ${Number(part) + 1})`)[0] ?? "";
  return `${name[0]?.toUpperCase()}${name.slice(1)}${place} ${name.endsWith("s") && field !== "timing" ? "are" : "is"} not accepted: ${message.replace(/\.$/, "")}.`;
}

async function problemOf(response: Response): Promise<string> {
  // Only the snippet can be that long; the API's own words count the bytes of the request.
  if (response.status === 413) return "The snippet is too long for this service.";
  try {
    const problem = (await response.json()) as { detail?: unknown; title?: unknown; errors?: FieldProblem[] };
    const [first] = problem.errors ?? [];
    if (first) return sentenceOf(first);
    if (typeof problem.detail === "string") return problem.detail;
    if (typeof problem.title === "string") return problem.title;
  } catch {
    // Not JSON: the status has to do.
  }
  return `The server answered ${response.status} ${response.statusText}`.trim();
}

function post<Answer>(path: string, body: unknown, signal?: AbortSignal): Promise<Answer> {
  return call<Answer>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
}

export const getExamples = (): Promise<Example[]> => call("/examples");
export const getLessons = (): Promise<LessonHead[]> => call("/lessons");
export const getLesson = (name: string): Promise<Lesson> => call(`/lessons/${encodeURIComponent(name)}`);
export const getGlossary = (): Promise<Term[]> => call("/glossary");
export const getValues = (id: string, paths: string[]): Promise<ReportValue[]> =>
  call(`/explorations/${encodeURIComponent(id)}/values?${new URLSearchParams(paths.map((path) => ["path", path])).toString()}`);
export const getReasons = (): Promise<Reason[]> => call("/reasons");
export const getChoices = (): Promise<Choices> => call("/choices");
export const getVersion = (): Promise<Version> => call("/version");
export const getExploration = (id: string): Promise<Report> => call(`/explorations/${encodeURIComponent(id)}`);
export const startExploration = (request: ExplorationRequest, signal?: AbortSignal): Promise<Report> =>
  post("/explorations", request, signal);

/** One kernel of an exploration, and what it is to be compiled for. */
export interface KernelCode {
  id: string;
  kernel: string;
  /** Its graph; null of a kernel of the peer. */
  graph: string | null;
  target: string;
}

/** An exploration of that kernel's text, done or still running; asked again, it is the same one. */
export function compileKernel({ id, kernel, graph, target }: KernelCode, wait: number): Promise<Report> {
  const query = new URLSearchParams({ target, wait: String(wait), ...(graph === null ? { compiler: "peer" } : { graph }) });
  return call(`/explorations/${encodeURIComponent(id)}/kernels/${encodeURIComponent(kernel)}/machine-code?${query.toString()}`, { method: "POST" });
}

/** By what the service tells the streams of this page from others'. */
const FOLLOWER = `follower=${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;

export const cancelExploration = (id: string): Promise<void> =>
  call(`/explorations/${encodeURIComponent(id)}`, { method: "DELETE" });
/** Cancels it, unless somebody else follows the same exploration. */
export const leaveExploration = (id: string): Promise<void> =>
  call(`/explorations/${encodeURIComponent(id)}?${FOLLOWER}`, { method: "DELETE" });
export const getWhy = (id: string, a: string, b: string): Promise<Answer[]> =>
  call(`/explorations/${encodeURIComponent(id)}/why?${new URLSearchParams({ a, b }).toString()}`);
export const getReasonPage = (id: string): Promise<ReasonPage> => call(`/reasons/${encodeURIComponent(id)}`);
/** Beside the exploration `other`; without it, beside the one that it is based on. */
export const getComparison = (id: string, other: string | null): Promise<Comparison> =>
  call(`/explorations/${encodeURIComponent(id)}/comparison${other === null ? "" : `?with=${encodeURIComponent(other)}`}`);
export const getChildren = (id: string): Promise<Child[]> => call(`/explorations/${encodeURIComponent(id)}/children`);
export const highlight = (source: string, language: string): Promise<{ lines: string[] }> =>
  post("/highlight", { source, language });

export interface EventHandlers {
  /** Whether the server is there: the stream comes back by itself. */
  reached(isReached: boolean): void;
  /** So many wait before it. */
  queued(position: number): void;
  /** It runs, for so many seconds at the most. */
  started(wallSeconds: number): void;
  /** A stage has ended, and these parts of the report are new. */
  stage(changed: Parts): void;
  /** Its worker was lost: it begins again, and nothing that was told of it holds. */
  again(): void;
  done(): void;
  /** The stream is gone for good; the report has to be asked for. */
  lost(): void;
}

/** Follow an exploration until it is done; the answer stops following. */
export function followEvents(id: string, handlers: EventHandlers): () => void {
  const stream = new EventSource(`${API}/explorations/${encodeURIComponent(id)}/events?${FOLLOWER}`);
  let attempt: string | null = null;
  const listen = (name: string, act: (data: Record<string, unknown>) => void): void =>
    stream.addEventListener(name, (event) => {
      const { data, lastEventId } = event as MessageEvent<string>;
      const told = lastEventId.split("-")[0] ?? "";
      if (attempt !== null && told !== attempt) handlers.again();
      attempt = told;
      try {
        act(JSON.parse(data || "{}") as Record<string, unknown>);
      } catch {
        // One unreadable event is not worth losing the others: the finished report is fetched whole.
      }
    });
  listen("queued", (data) => handlers.queued(Number(data.position ?? 0)));
  listen("started", (data) => handlers.started(Number(data.wall_seconds ?? 0)));
  listen("stage", (data) => handlers.stage((data.changed as Parts | undefined) ?? {}));
  listen("done", () => {
    stream.close();
    handlers.done();
  });
  stream.onopen = () => handlers.reached(true);
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) handlers.lost();
    else handlers.reached(false);
  };
  return () => stream.close();
}

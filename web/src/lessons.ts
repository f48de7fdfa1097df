/**
 * Lessons: which one is open and at which step, what was answered, and what is right.
 *
 * A lesson is a list of programs to explore and of addresses to look at, so going to a step is exploring and `lookAt`.
 * What is right is never in a lesson: the service computes it from the report that is on screen, by the question's path.
 */
import { batch, computed, effect, signal } from "@preact/signals";
import * as api from "./api";
import { isEmbedded } from "./embed";
import { explore, idInPath } from "./explore";
import { isNarrow } from "./layout";
import { fieldsFrom, options, requestFrom } from "./options";
import type { Report } from "./report";
import { givenAwayBy, questionIn } from "./questions";
import * as state from "./state";
import { inAddress, lookAt, number, text } from "./view";

const STORED = "fusionscope.lessons";

export const lessonHeads = signal<api.LessonHead[]>([]);
export const lesson = signal<api.Lesson | null>(null);
export const glossary = signal<api.Term[]>([]);
export const lessonName = inAddress<string | null>("lesson", null, text);
/** Counted from 1, as people do. */
export const stepNumber = inAddress<number>("step", 1, { read: number.read, write: String });

/** `ask={"text": "How many kernels?", "kind": "number", "answer": "summary.kernels"}` */
export const askedHere = inAddress<api.Question | null>("ask", null, {
  read: questionIn,
  write: (value) => (value ? JSON.stringify(value) : ""),
});

function storedAnswers(): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}

/** What the reader answered, by lesson and step: remembered in this browser. */
export const answers = signal<Record<string, string>>(storedAnswers());

export function answer(key: string, given: string): void {
  answers.value = { ...answers.value, [key]: given };
  localStorage.setItem(STORED, JSON.stringify(answers.value));
}

export const answerKey = (name: string, step: number): string => `${name}/${step}`;

/** How many questions of a lesson have been answered. */
export function answeredOf(name: string): number {
  return Object.keys(answers.value).filter((key) => key.startsWith(`${name}/`)).length;
}

export const step = computed<api.LessonStep | null>(() => {
  const open = lesson.value;
  return open && open.name === lessonName.value ? (open.steps[Math.min(stepNumber.value, open.steps.length) - 1] ?? null) : null;
});

/** What questions are about is known once kernels are written; times come later. */
function isTold(shown: Report): boolean {
  return shown.status !== "running" || shown.stages.some(({ name }) => name === "codegen");
}

/** Whether what is on screen is the program of this step, as far as questions need it. */
export const isStepShown = computed(() => {
  const shown = state.report.value;
  return step.value !== null && shown !== null && isTold(shown) && shown.source === step.value.source;
});

/** The key of a question that a link asks about the exploration on screen, or about the one that is still loading: what
 *  the reader types meanwhile must stay. */
export const keyAskedHere = (question: api.Question): string => {
  const id = state.report.value?.id ?? idInPath(location.pathname);
  return `${id ?? ""}?${question.answer}`;
};

/** The question that waits for an answer, where what it is about is on screen. */
const openQuestion = computed<api.Question | null>(() => {
  const open = lesson.value;
  const question = step.value ? step.value.question : askedHere.value;
  const isOther = step.value !== null && state.report.value !== null && state.report.value.source !== step.value.source;
  if (!question || isOther) return null;
  const key = step.value && open ? answerKey(open.name, Math.min(stepNumber.value, open.steps.length)) : keyAskedHere(question);
  return answers.value[key] === undefined ? question : null;
});

/** A prediction comes first: until it is made, no figure, detail or card tells what the compiler did. */
export const isAsking = computed(() => openQuestion.value !== null);

/** What of the map and of the marks in the editor stays hidden meanwhile. */
export const hiddenNow = computed<ReturnType<typeof givenAwayBy>>(() => (openQuestion.value ? givenAwayBy(openQuestion.value.answer) : "nothing"));

/** Look at what a query names, and stay at the step. */
export function lookAtStep(view: string): void {
  const place = new URLSearchParams(view);
  if (lessonName.value) place.set("lesson", lessonName.value);
  if (stepNumber.value > 1) place.set("step", String(stepNumber.value));
  // A narrow screen shows one pane, and the lesson stands in that of the snippet.
  if (isNarrow.value) place.set("tab", "code");
  lookAt(place.toString());
}

export async function openLesson(name: string, at = 1): Promise<void> {
  try {
    const found = lesson.value?.name === name ? lesson.value : await api.getLesson(name);
    batch(() => {
      lesson.value = found;
      lessonName.value = name;
      askedHere.value = null;
    });
    goTo(at);
  } catch (error) {
    state.problem.value = error instanceof Error ? error.message : String(error);
    lessonName.value = null;
  }
}

/** Explores the step's program where another one is on screen. */
export function goTo(at: number): void {
  const open = lesson.value;
  if (!open) return;
  stepNumber.value = Math.max(1, Math.min(at, open.steps.length));
  const now = step.value;
  if (!now) return;
  const isThere = state.report.value?.source === now.source && dynamicOf(state.report.value.options) === dynamicOf(now.options);
  if (!isThere && !isEmbedded()) {
    options.value = fieldsFrom(now.options);
    state.source.value = now.source;
    void explore(requestFrom(now.source));
  }
  const isAnswered = answers.value[answerKey(open.name, stepNumber.value)] !== undefined;
  lookAtStep(isAnswered ? now.reveal_view || now.view : now.view);
}

const dynamicOf = (options: Record<string, unknown> | undefined): string => String(options?.dynamic ?? null);

export function closeLesson(): void {
  batch(() => {
    lessonName.value = null;
    stepNumber.value = 1;
    lesson.value = null;
  });
}

/** A lesson that the address names, without exploring what the address shows already. */
export function followLessonInAddress(): void {
  effect(() => {
    const name = lessonName.value;
    if (!name || lesson.value?.name === name) return;
    void api.getLesson(name).then((found) => (lesson.value = found), (error: Error) => (state.problem.value = error.message));
  });
}

/** What the paths of a step come to in the report on screen, by path. */
export const values = signal<Map<string, api.ReportValue>>(new Map());

/** Asks the service once there are kernels, and again at the end; what it said of another exploration is dropped. */
export function followValues(): void {
  let last = "";
  effect(() => {
    const shown = state.report.value;
    const question = step.value ? step.value.question : askedHere.value;
    const claimed = (step.value?.claims ?? []).flatMap(({ path }) => (path ? [path] : []));
    const paths = [...new Set([...(question ? [question.answer] : []), ...claimed])];
    if (!shown?.id || !isTold(shown) || paths.length === 0 || (step.value && !isStepShown.value)) return;
    const asked = JSON.stringify([shown.id, shown.status === "running", paths]);
    if (asked === last) return;
    last = asked;
    void api.getValues(shown.id, paths).then(
      (found) => {
        if (asked === last) values.value = new Map(found.map((one) => [one.path, one]));
      },
      (error: Error) => (state.problem.value = error.message),
    );
  });
}

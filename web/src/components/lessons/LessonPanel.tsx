import type { Lesson } from "../../api";
import { isEmbedded } from "../../embed";
import * as format from "../../format";
import {
  answer, answerKey, answers, askedHere, closeLesson, goTo, isStepShown, keyAskedHere, lesson, lessonHeads, lookAtStep, openLesson, step, stepNumber, values,
} from "../../lessons";
import { differsHere } from "../../questions";
import { examples, reasonShown, source } from "../../state";
import { Asked } from "./Asked";
import { Prose } from "./Prose";

/** Above the editor: a lesson step by step, or a question that somebody asked about this exploration. */
export function LessonPanel() {
  if (lesson.value && step.value) return <OpenLesson open={lesson.value} />;
  return askedHere.value ? <QuestionOfALink /> : <AboutTheExample />;
}

/** What an example shows, folded until it is wanted, and the lesson that goes on from there. */
function AboutTheExample() {
  const example = examples.value.find((one) => one.source === source.value);
  if (!example || isEmbedded()) return null;
  const { lesson_name: name } = example;
  return (
    <details class="about-example">
      <summary>About this example</summary>
      <Prose text={example.lesson} />
      {name && (
        <button type="button" onClick={() => void openLesson(name)}>
          Open its lesson
        </button>
      )}
    </details>
  );
}

function OpenLesson({ open }: { open: Lesson }) {
  const now = step.value;
  if (!now) return null;
  const at = Math.min(stepNumber.value, open.steps.length);
  const key = answerKey(open.name, at);
  const given = answers.value[key];
  const seen = new Set<string>();
  const onKey = (event: KeyboardEvent): void => {
    if (event.target instanceof HTMLInputElement || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowRight" && at < open.steps.length) goTo(at + 1);
    else if (event.key === "ArrowLeft" && at > 1) goTo(at - 1);
    else return;
    event.preventDefault();
  };
  const tell = (said: string): void => {
    answer(key, said);
    if (now.reveal_view) lookAtStep(now.reveal_view);
  };
  return (
    <section class="lesson-panel" aria-label="Lesson" data-pane="lesson" tabIndex={-1} onKeyDown={onKey}>
      <header>
        <h2>{open.title}</h2>
        <span class="quiet">
          {at} of {open.steps.length}
        </span>
        <button type="button" class="close" aria-label="Close the lesson" onClick={closeLesson}>
          ×
        </button>
      </header>
      <div class="lesson-text" tabIndex={0} role="region" aria-label={now.title} key={key}>
        {at === 1 && <p class="lesson-idea">{open.idea}</p>}
        <h3>{now.title}</h3>
        <Prose text={now.text} seen={seen} />
        {now.question && (
          <Asked question={now.question} given={given} found={isStepShown.value ? values.value.get(now.question.answer) : undefined} onAnswer={tell}>
            <Prose text={now.reveal} seen={seen} />
            <Differing />
          </Asked>
        )}
        {(given !== undefined || !now.question) && <Recorded open={open} at={at} />}
        {at === open.steps.length && given !== undefined && <ReadNext open={open} />}
      </div>
      <footer>
        <button type="button" disabled={at === 1} onClick={() => goTo(at - 1)}>
          Back
        </button>
        <ol class="lesson-dots" aria-hidden="true">
          {open.steps.map((_, place) => (
            <li key={place} data-now={place + 1 === at || undefined} data-done={answers.value[answerKey(open.name, place + 1)] !== undefined || undefined} />
          ))}
        </ol>
        {at < open.steps.length ? (
          <button type="button" class={given === undefined ? "" : "primary"} onClick={() => goTo(at + 1)}>
            Next
          </button>
        ) : (
          <NextLesson open={open} />
        )}
      </footer>
    </section>
  );
}

function NextLesson({ open }: { open: Lesson }) {
  const place = lessonHeads.value.findIndex(({ name }) => name === open.name);
  const next = lessonHeads.value[place + 1];
  if (!next || isEmbedded()) return <button type="button" onClick={closeLesson}>Done</button>;
  return (
    <button type="button" title={next.title} onClick={() => void openLesson(next.name)}>
      Next lesson
    </button>
  );
}

/** Numbers of the text that are others in this exploration: on another device, or in another version of the program. */
function Differing() {
  const now = step.value;
  const found = (now?.claims ?? []).flatMap((claim) => differsHere(claim, values.value.get(claim.path)) ?? []);
  if (!isStepShown.value || found.length === 0) return null;
  return (
    <p class="lesson-differs">
      The text was checked on a CPU. In this exploration {found.join(", ")}.
    </p>
  );
}

/** Measured on a GPU and kept beside the lesson. */
function Recorded({ open, at }: { open: Lesson; at: number }) {
  return (
    <>
      {open.recorded.map(({ device, torch, steps }) => {
        const figures = steps[at - 1];
        if (!figures || figures.compiled_ms === null || figures.eager_ms === null) return null;
        return (
          <p key={device} class="lesson-recorded">
            Recorded on an {device} with torch {torch}: eager {format.milliseconds(figures.eager_ms)}, compiled {format.milliseconds(figures.compiled_ms)}.
          </p>
        );
      })}
    </>
  );
}

function ReadNext({ open }: { open: Lesson }) {
  return (
    <nav aria-label="Read next">
      <h3>Read next</h3>
      <ul>
        {open.read_next.map(({ title, kind, name }) => (
          <li key={name}>
            {kind === "lesson" ? (
              <button type="button" class="link" onClick={() => void openLesson(name)}>
                {title}
              </button>
            ) : kind === "reason" ? (
              <button type="button" class="link" onClick={() => (reasonShown.value = name)}>
                {title}
              </button>
            ) : (
              <a href={`/${name.replace(/\.md$/, "")}`}>{title}</a>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A question in the address, asked of who opens the link. */
function QuestionOfALink() {
  const question = askedHere.value;
  if (!question) return null;
  const key = keyAskedHere(question);
  return (
    <section class="lesson-panel" aria-label="A question about this exploration" data-pane="lesson" tabIndex={-1}>
      <header>
        <h2>A question for you</h2>
        <button type="button" class="close" aria-label="Close the question" onClick={() => (askedHere.value = null)}>
          ×
        </button>
      </header>
      <div class="lesson-text" tabIndex={0} role="region" aria-label="The question">
        <Asked key={key} question={question} given={answers.value[key]} found={values.value.get(question.answer)} onAnswer={(said) => answer(key, said)} />
      </div>
    </section>
  );
}

import { effect } from "@preact/signals";
import { render } from "preact";
import * as api from "./api";
import { App } from "./components/App";
import { draftHere } from "./draft";
import { explore, idInPath, open } from "./explore";
import { followLessonInAddress, followValues, glossary, lessonHeads, openLesson } from "./lessons";
import { installLighting } from "./lighting";
import { NO_OPTIONS, options, requestFrom } from "./options";
import * as state from "./state";
import { followTheme } from "./theme";
import { forgetTyping } from "./typing";
import { followView, lookAt } from "./view";
import { titleOf } from "./visits";
import { installComparison } from "./whatIf";
import { followDecisions } from "./components/why/followDecisions";
import "./styles/base.css";
import "./styles/panes.css";
import "./styles/map.css";
import "./styles/code.css";
import "./styles/memory.css";
import "./styles/detail.css";
import "./styles/lessons.css";
import "./styles/why.css";

/** What the address asks for; where that is nothing, the first example, but not in the place of code that a visitor
 *  wrote while the examples were on their way. It is explored with the options that the fields say. */
async function firstExploration(written = "", fields = options.value): Promise<void> {
  const id = idInPath(location.pathname);
  if (id) {
    await open(id, location.search);
    return;
  }
  const asked = new URLSearchParams(location.search);
  const lesson = asked.get("lesson");
  if (lesson) {
    await openLesson(lesson, Number(asked.get("step") ?? 1));
    return;
  }
  const [first] = state.examples.value;
  if (!first || written) return;
  const query = location.search;
  options.value = fields;
  state.source.value = draftHere() ?? first.source;
  const explored = explore(requestFrom(first.source), "keep");
  // What begins forgets the selection.
  lookAt(query);
  await explored;
}

async function load(): Promise<void> {
  const ignore = (): void => undefined;
  void api.getVersion().then((version) => (state.version.value = version), ignore);
  void api.getChoices().then((choices) => (state.choices.value = choices), ignore);
  void api
    .getReasons()
    .then((reasons) => (state.reasons.value = new Map(reasons.map((reason) => [reason.id, reason]))), ignore);
  void api.getLessons().then((heads) => (lessonHeads.value = heads), ignore);
  void api.getGlossary().then((terms) => (glossary.value = terms), ignore);
  const examples = api.getExamples().then(
    (list) => (state.examples.value = list),
    (error: Error) => (state.problem.value = error.message),
  );
  if (!idInPath(location.pathname)) await examples;
  const first = firstExploration(state.source.value);
  followView();
  await first;
}

const root = document.getElementById("app");
if (!root) throw new Error("index.html has no #app");
followTheme();
// What is asked for is on its way while the page is built, in a task of its own.
setTimeout(() => {
  render(<App />, root);
  installLighting(root);
});
installComparison();
followDecisions();
followLessonInAddress();
followValues();
// The entry of the history that an exploration leaves keeps its name until the next one is known.
effect(() => {
  const shown = state.report.value;
  if (shown?.source) document.title = `${titleOf(shown.source)} · Fusionscope`;
});
window.addEventListener("popstate", () => {
  // What was typed belongs to the entry that is left: explored from here it would take the place of the way forward.
  forgetTyping();
  void firstExploration("", NO_OPTIONS);
});
void load();

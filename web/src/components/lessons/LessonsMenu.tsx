import { useState } from "preact/hooks";
import * as format from "../../format";
import * as api from "../../api";
import { answeredOf, lessonHeads, openLesson } from "../../lessons";
import { report } from "../../state";
import { AskAQuestion } from "./AskAQuestion";
import { useMenu } from "../useMenu";

/** Every lesson, how far the reader came in it, and the way to a question of one's own. */
export function LessonsMenu() {
  const menu = useMenu();
  const [isAsking, setAsking] = useState(false);
  const shut = (): void => {
    if (menu.current) menu.current.open = false;
  };
  const choose = (head: api.LessonHead) => (): void => {
    shut();
    void openLesson(head.name);
  };
  return (
    <>
      <details class="menu" ref={menu}>
        <summary>Lessons</summary>
        <div class="menu-list lessons-list">
          <ol aria-label="Lessons">
            {lessonHeads.value.map((head) => (
              <li key={head.name}>
                <button type="button" onClick={choose(head)}>
                  <b>{head.title}</b>
                  <span class="quiet">{progressOf(head)}</span>
                </button>
              </li>
            ))}
          </ol>
          <button
            type="button"
            disabled={!report.value?.id}
            onClick={() => {
              shut();
              setAsking(true);
            }}
          >
            Ask a question about this…
          </button>
        </div>
      </details>
      {isAsking && <AskAQuestion onClose={() => setAsking(false)} />}
    </>
  );
}

function progressOf({ name, minutes, steps }: api.LessonHead): string {
  const answered = answeredOf(name);
  if (answered === 0) return format.count(minutes, "minute");
  return answered >= steps ? "done" : `${answered} of ${steps}`;
}

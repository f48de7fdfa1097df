import { explore, stop } from "../explore";
import { requestFrom } from "../options";
import { isRunning, problem, source } from "../state";
import { forgetTyping } from "../typing";

export function exploreNow(): void {
  forgetTyping();
  try {
    void explore(requestFrom(source.value));
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
}

export function exploreOrStop(): void {
  if (isRunning.value) void stop();
  else exploreNow();
}

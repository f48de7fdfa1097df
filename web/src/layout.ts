/** Whether the screen has room for panes side by side. */
import { signal } from "@preact/signals";

const narrow = matchMedia("(max-width: 900px)");

export const isNarrow = signal(narrow.matches);

narrow.addEventListener("change", () => (isNarrow.value = narrow.matches));

/** The theme of the system, until the reader chooses one. */
import { signal } from "@preact/signals";

type Theme = "light" | "dark";

const STORED = "fusionscope.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  const stored = localStorage.getItem(STORED);
  return stored === "light" || stored === "dark" ? stored : null;
}

export const theme = signal<Theme>(chosen() ?? (system.matches ? "dark" : "light"));

/** Pygments' colours are the server's: it is also who writes the classes. */
function apply(): void {
  document.documentElement.dataset.theme = theme.value;
  let sheet = document.querySelector<HTMLLinkElement>("#highlight-css");
  if (!sheet) {
    sheet = document.createElement("link");
    sheet.id = "highlight-css";
    sheet.rel = "stylesheet";
    document.head.append(sheet);
  }
  sheet.href = `/api/v1/highlight.css?theme=${theme.value}`;
}

export function followTheme(): void {
  apply();
  system.addEventListener("change", () => {
    if (chosen()) return;
    theme.value = system.matches ? "dark" : "light";
    apply();
  });
}

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(STORED, theme.value);
  apply();
}

/** A reason's page: Markdown with headings and code, in parts that can be shown as elements. Pure. */

export type Part = { kind: "heading"; text: string } | { kind: "text"; text: string } | { kind: "code"; language: string; source: string };

/** The title is left out: whoever shows the page has said it. */
export function partsOf(markdown: string): Part[] {
  const parts: Part[] = [];
  let text: string[] = [];
  const close = (): void => {
    const whole = text.join("\n").trim();
    if (whole) parts.push({ kind: "text", text: whole });
    text = [];
  };
  const lines = markdown.split("\n");
  for (let place = 0; place < lines.length; place += 1) {
    const line = lines[place]!;
    const [, fence, language = ""] = /^(```+)\s*(\w*)/.exec(line) ?? [];
    const [, marks = "", heading] = /^(#+)\s+(.*)$/.exec(line) ?? [];
    if (fence) {
      close();
      let end = place + 1;
      while (end < lines.length && !lines[end]!.startsWith(fence)) end += 1;
      parts.push({ kind: "code", language, source: lines.slice(place + 1, end).join("\n") });
      place = end;
    } else if (heading !== undefined) {
      close();
      if (marks.length > 1) parts.push({ kind: "heading", text: heading });
    } else text.push(line);
  }
  close();
  return parts;
}

/** A snippet that calls what it compiles can be explored. */
export function isProgram(part: Part): boolean {
  return part.kind === "code" && part.language === "python" && /torch\.compile|nn\.Module|def /.test(part.source);
}

/**
 * Highlighted source comes from our own server as HTML; still, only `<span class="…">`, `</span>` and character
 * references pass. Everything else becomes text, so a fault there cannot become markup here.
 */
const ALLOWED = /<span(?: class="[A-Za-z0-9 _-]*")?>|<\/span>|&(?:amp|lt|gt|quot|#39|#x27);/g;

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

export function onlySpans(html: string): string {
  let clean = "";
  let open = 0;
  let from = 0;
  for (const match of html.matchAll(ALLOWED)) {
    clean += escaped(html.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[0].startsWith("<span")) open += 1;
    if (match[0] === "</span>") {
      if (open === 0) continue;
      open -= 1;
    }
    clean += match[0];
  }
  return clean + escaped(html.slice(from)) + "</span>".repeat(open);
}

const PYTORCH = new Set(["pytorch.org", "docs.pytorch.org", "meta-pytorch.org", "meta-pytorch.github.io"]);

/** An address of PyTorch's documentation; null for any other. A report names it, and a snippet can write what it likes there. */
export function pytorchPage(address: string | null | undefined): string | null {
  try {
    const { protocol, host, username, href } = new URL(address ?? "");
    return protocol === "https:" && username === "" && PYTORCH.has(host) ? href : null;
  } catch {
    return null;
  }
}

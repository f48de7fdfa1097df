"""A report as one HTML file that stands alone: no script, nothing loaded, readable from a disk or a mail.

It is the Markdown of `summary`, made HTML by markdown-it, with the kernels drawn behind the answer, coloured
code, a table of contents, and the report itself as inert JSON for programs. The page's own scripts are no part of it:
they take two megabytes and ask the service for half of what they show, which a file cannot. Its policy allows the one
style sheet, by hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from compiler.report import Report
from server import drawing
from server.highlight import MAX_BYTES, highlight_lines, plain_lines, style_sheet
from server.plain_text import one_line

_COLOURED_LANGUAGES = {"python": "python", "triton": "python", "cpp": "cpp", "ptx": "ptx"}
_FOLDED_LINES = 60
"""Code that is longer than this is folded away at first."""

_LAYOUT = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 0 auto; padding: 1rem 1.5rem 4rem;
  background: light-dark(#fff, #131920); color: light-dark(#17202b, #dfe6ee) }
h1 { font-size: 1.25rem; font-weight: 600; opacity: .75 }
h2 { font-size: 1.3rem; border-top: 1px solid #8884; padding-top: 1.25rem }
h1, h2, h3 { line-height: 1.25; margin: 2rem 0 .5rem; overflow-wrap: anywhere }
h1 { margin-top: 0 }
pre, table { overflow-x: auto; display: block; max-width: 100% }
pre { border: 1px solid #8884; border-radius: 6px; padding: .5rem; line-height: 1.4; counter-reset: line }
code { font: .875em ui-monospace, monospace }
pre .line { counter-increment: line }
pre .line::before { content: counter(line); display: inline-block; width: 3em; margin-right: 1em; text-align: right;
  opacity: .6; user-select: none }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid #8884; padding: .25rem .75rem .25rem 0; text-align: left }
blockquote { border-left: 4px solid #8888; margin-left: 0; padding-left: 1rem }
nav ul { padding: 0; margin: 0; list-style: none; font-size: .85rem }
nav .level3 { margin-left: 1rem }
nav a { color: inherit; text-decoration: none }
nav a:hover { text-decoration: underline }
li { overflow-wrap: anywhere }
summary { cursor: pointer }
@media (min-width: 70rem) {
  body { display: grid; grid-template-columns: 15rem minmax(0, 1fr); gap: 2.5rem }
  nav { position: sticky; top: 1rem; max-height: calc(100vh - 2rem); overflow-y: auto }
}
@media print { details::details-content { content-visibility: visible } nav { display: none } }
"""


@lru_cache
def _style() -> str:
    dark = "@media (prefers-color-scheme: dark) {\n" + style_sheet("dark") + "\n}\n"
    return _LAYOUT + drawing.style() + style_sheet("light") + "\n" + dark


@lru_cache
def policy() -> str:
    """The content policy of a document, for its own head and for the header of whoever serves it."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


Colour = Callable[[str, str], list[str] | None]
"""Makes a text of a language coloured lines; None where that takes too long."""


def document(report: Report, text: str, json_body: bytes, colour: Colour = highlight_lines) -> str:
    """The file: `text` is the report's Markdown, `json_body` the report as JSON."""
    parsed, environment = _parser(), dict[str, Any](colour=colour)
    tokens = parsed.parse(text, environment)
    contents = _contents(tokens)
    answer, rest = (parsed.renderer.render(part, parsed.options, environment) for part in _parted(tokens))
    drawn = _drawings(report)
    if drawn:
        contents = '<li><a href="#drawn">Drawing</a></li>\n' + contents
    body = answer + drawn + rest
    title = one_line(report.summary.verdict or report.status)
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)} - Fusionscope</title>\n"
        f"<style>{_style()}</style>\n</head>\n<body>\n"
        f'<nav aria-label="Contents"><ul>\n{contents}</ul></nav>\n<main>\n{body}</main>\n'
        f'<script type="application/json" id="report">{inert(json_body)}</script>\n</body>\n</html>\n'
    )


def inert(json_body: bytes) -> str:
    """JSON that is the same JSON, and that cannot end or change the element that it stands in."""
    text = json_body.decode("utf-8")
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _parted(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """What stands before the first heading of the second level, which is the answer, and the rest."""
    is_heading = (place for place, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2")
    first = next(is_heading, len(tokens))
    return tokens[:first], tokens[first:]


def _drawings(report: Report) -> str:
    """Every graph's kernels, drawn."""
    drawn = [(graph, drawing.drawing(graph)) for graph in report.graphs]
    named = len(report.graphs) > 1
    parts = [(f"<h3>{html.escape(one_line(graph.name))}</h3>\n" if named else "") + svg for graph, svg in drawn if svg]
    legend = (
        "<p>Kernels from the first launch to the last. On the right are tensors that pass through memory; "
        "dashed on the left are refused fusions, with the reason on hover and under Decisions.</p>\n"
    )
    return f'<h2 id="drawn">Kernels and the tensors between them</h2>\n{legend}' + "\n".join(parts) if parts else ""


def _contents(tokens: Sequence[Token]) -> str:
    """Gives each heading of the second and third level an id; the list of them."""
    entries: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag in ("h2", "h3"):
            token.attrSet("id", f"section-{len(entries)}")
            said = html.escape(tokens[place + 1].content.replace("`", "").replace("\\", ""))
            level = f' class="level{token.tag[1]}"'
            entries.append(f'<li{level}><a href="#section-{len(entries)}">{said}</a></li>\n')
    return "".join(entries)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    # Nothing here links anywhere, so that nothing that is quoted can.
    parser.disable(["link", "image", "autolink", "reference", "html_inline", "html_block"])
    parser.add_render_rule("fence", _fence)
    return parser


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, environment: dict[str, Any]
) -> str:
    """A code block with numbered lines; folded where it is long."""
    token = tokens[place]
    text = token.content.removesuffix("\n")
    language = _COLOURED_LANGUAGES.get(token.info.strip())
    # Colouring takes long and makes much of little: what a document may spend on it is bounded.
    spent = environment.get("coloured", 0) + len(text)
    lines, note = None, ""
    if language is not None and spent <= MAX_BYTES:
        lines = environment["colour"](text, language)
        # What took too long once is not tried again.
        environment["coloured"] = spent if lines is not None else MAX_BYTES + 1
        note = "" if lines is not None else "<p>Not coloured: that took too long.</p>\n"
    elif language is not None:
        note = f"<p>Not coloured: only {MAX_BYTES // 1024} KiB of a document are.</p>\n"
    if lines is None:
        lines = plain_lines(text)
    inner = "\n".join(f'<span class="line">{line}</span>' for line in lines)
    block = f'{note}<pre class="highlight" tabindex="0"><code>{inner}</code></pre>\n'
    if len(lines) <= _FOLDED_LINES:
        return block
    return f"<details><summary>{len(lines)} lines of {html.escape(token.info)}</summary>\n{block}</details>\n"

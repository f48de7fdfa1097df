"""Colours for generated code: Pygments turns source into HTML that carries classes only; the style sheet is apart."""

from __future__ import annotations

import html
from functools import lru_cache
from typing import Literal

from pygments import highlight  # type: ignore[import-untyped, unused-ignore]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped, unused-ignore]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped, unused-ignore]

MAX_BYTES = 200 * 1024
"""Pygments makes six to ten times as much HTML as there is source: more than this would only stall the page."""

Theme = Literal["light", "dark"]
_STYLES: dict[Theme, str] = {"light": "xcode", "dark": "github-dark"}
"""Styles whose every colour stands out from its background by at least 4.5 to 1 (WCAG 2.2 AA)."""


def highlight_lines(source: str, language: str) -> list[str]:
    """One piece of HTML for each line of `source`; a token that spans lines is closed and opened again at each end."""
    # Left alone, Pygments drops empty lines at the ends, and line numbers would no longer agree with the source.
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    coloured: str = highlight(source, lexer, HtmlFormatter(nowrap=True))
    lines = coloured.split("\n")
    expected = len(plain_lines(source))
    return lines[:expected] + [""] * (expected - len(lines))


def plain_lines(source: str) -> list[str]:
    """The same without colours."""
    return [html.escape(line) for line in source.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


@lru_cache
def style_sheet(theme: Theme) -> str:
    """CSS for elements within `.highlight`."""
    css: str = HtmlFormatter(style=_STYLES[theme]).get_style_defs(".highlight")
    return css

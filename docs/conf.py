"""The documentation site: Sphinx with MyST and Furo, as `tools/documentation.py` builds it.

Sphinx fails a build for a broken link or a page in no table of contents, and is kept up by many. Every file is Markdown
that reads well without the site, so the tables of contents stand here. The service's content security policy allows no
inline script: `site/base.html` takes Furo's away, and `site/theme.js` does its work.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

project = "Fusionscope"
html_title = "Fusionscope"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["performance/archive", "site"]
templates_path = ["site"]
html_static_path = ["site/theme.js", "site/theme.css"]
html_js_files = ["theme.js"]
html_css_files = ["theme.css"]
html_theme = "furo"
html_use_index = False
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "open.html"),
        *("sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_copy_source = False
html_show_copyright = False
html_favicon = "../web/public/favicon.svg"
myst_heading_anchors = 3
#: Without a date and a time: the same sources give the same site.
html_last_updated_fmt = None

ELSEWHERE = {
    "index": "README.md",
    "changelog": "CHANGELOG.md",
    "client": "client/README.md",
    "guides/contributing": "CONTRIBUTING.md",
}
"""Files outside of `docs/`, by the pages that links to them lead to. All but the first are shown there as they are."""

ROOT = Path(__file__).resolve().parents[1]

_DONE_BY_THE_PAGE = re.compile(r"^```(view|check)\n.*?^```\n", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"^```ask\n(.*?)\n(?:kind|choice): .*?^```\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(((?!\w+:)[^)#\s]+)")
_LESSONS = "\n```{toctree}\n:hidden:\n:glob:\n\n/lessons/[0-9]*\n```\n"


def read(app: Any, name: str, text: list[str]) -> None:
    """What Sphinx gets in the place of a file's own text."""
    if re.match(r"lessons/\d", name):
        text[0] = lesson(name.split("_", 1)[1], text[0])
    elif name == "lessons/README":
        text[0] += _LESSONS
    elif name == "reasons":
        text[0] += list_of_reasons()
    elif name.startswith("reasons/"):
        # Ninety lines in the table of contents of every page would hide the others: the list above has them.
        text[0] = "---\norphan: true\n---\n" + text[0]
    elif name in ELSEWHERE and name != "index":
        path = ROOT / ELSEWHERE[name]
        text[0] = _LINK.sub(lambda found: f"]({within(path.parent / found[1], name)}", path.read_text(encoding="utf-8"))
        return
    page = (ROOT / "docs" / name).parent
    text[0] = _LINK.sub(lambda found: f"]({within(page / found[1], name)}", text[0])


def lesson(name: str, text: str) -> str:
    """A lesson for readers: its questions without their answers, and a link to where it is played."""
    play = f'<a href="/?lesson={name}">Work through this lesson on the page</a>, which asks before it tells.'
    told = _QUESTION.sub(r"> **Question.** \1\n", _DONE_BY_THE_PAGE.sub("", text))
    return told.replace("## ", f"{play}\n\n## ", 1)


def list_of_reasons() -> str:
    """All reasons by family."""
    families: dict[str, list[str]] = {}
    for path in sorted((ROOT / "docs" / "reasons").glob("*.md")):
        families.setdefault(path.stem.split(".")[0], []).append(f"- [{path.stem}](reasons/{path.name})")
    return "".join(f"\n## {family}\n\n" + "\n".join(links) + "\n" for family, links in families.items())


def within(target: Path, name: str) -> str:
    """The link from the page `name` to what stands at `target`."""
    target = target.resolve()
    for page, place in ELSEWHERE.items():
        if target == ROOT / place:
            target = ROOT / "docs" / f"{page}.md"
    return os.path.relpath(target, (ROOT / "docs" / name).parent)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

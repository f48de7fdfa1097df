"""What a reason means, told once: its sentence stands on its page, where learners read it, and is taken from there.

docs/reasons/<id>.md    # id, its sentence, then what it means, an example and what to do
docs/rewrites.md        a section for each reason: ## id, its sentence, and what a reader can do, if anything
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

#: Where the pages are: in a wheel in this folder beside this file, in a checkout among the documents.
WHERE_INSTALLED = "reason_pages"
_FOLDERS = (Path(__file__).parent / WHERE_INSTALLED, Path(__file__).parents[1] / "docs")
FOLDER = next((folder for folder in _FOLDERS if (folder / "reasons").is_dir()), _FOLDERS[0])


def page_of(reason: str) -> str:
    """The Markdown of a reason's page. Raises `FileNotFoundError` where the pages are not installed."""
    return (FOLDER / "reasons" / f"{reason}.md").read_text(encoding="utf-8")


@cache
def sentences() -> dict[str, str]:
    """The sentence of each reason with a page of its own, by its id."""
    found = {}
    for path in (FOLDER / "reasons").glob("*.md"):
        _, sentence, *_ = page_of(path.stem).split("\n\n", 2)
        found[path.stem] = _on_one_line(sentence)
    return found


@cache
def rewrite_sections() -> dict[str, tuple[str, str]]:
    """The sentence of each reason of `rewrites.md`, and its remedy, which may be empty."""
    text = (FOLDER / "rewrites.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=[a-z_]+\.[a-z_]+$)", text, flags=re.MULTILINE)[1:]
    found = {}
    for section in sections:
        reason, sentence, *rest = section.split("\n## ")[0].strip().split("\n\n")
        found[reason] = (_on_one_line(sentence), _on_one_line(rest[0]) if rest else "")
    return found


def _on_one_line(text: str) -> str:
    return " ".join(text.split())

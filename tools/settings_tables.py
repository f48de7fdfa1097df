"""Writes the tables of docs/settings.md from the settings themselves: `python -m tools.settings_tables`."""

from __future__ import annotations

import re
from pathlib import Path

from server.settings import ENVIRONMENT_PREFIX, GROUPS, Settings, group, shown

DOCUMENT = Path(__file__).parents[1] / "docs" / "settings.md"
TITLES = {
    "limits": "What an exploration may use, and logs",
    "web": "The program web",
    "worker": "The program worker",
}
_HEAD = "| setting | environment variable | default | what it does |\n|---|---|---|---|\n"


def table(title: str) -> str:
    """The rows of the group called `title`, as Markdown."""
    rows = [
        f"| `{name}` | `{ENVIRONMENT_PREFIX}{name.upper()}` | {_default(field.default)} | {field.description} |\n"
        for name, field in GROUPS[title].model_fields.items()
        if group(name) == title
    ]
    return _HEAD + "".join(rows)


def with_tables(text: str) -> str:
    """The document with the table of each group as it is now, under that group's heading.

    Raises `ValueError` where the document lacks one of the headings or its table.
    """
    for title, heading in TITLES.items():
        place = re.compile(rf"(^## {re.escape(heading)}\n(?:(?!## ).*\n)*?)(?:\|.*\n)+", re.MULTILINE)
        new = table(title)
        text, count = place.subn(lambda found, new=new: found[1] + new, text)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{DOCUMENT} has no table under the heading {heading!r}")
    return text


def _default(value: object) -> str:
    return "none" if shown(value) == "none" else f"`{shown(value)}`"


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{DOCUMENT}: {len(Settings.model_fields)} settings")

"""The examples that come with the product: each a Python file in `server/examples` that shows one idea.

The file's docstring is its description: the first line is the title, the rest says what to look at. A last line
`Lesson: round_trips` names the lesson that goes on from there. What a person gets in the editor is the file without it.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

FOLDER = Path(__file__).parent / "examples"


class Example(BaseModel):
    """A snippet that comes with the product and shows one idea."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "example": {
                "name": "softmax_by_hand",
                "title": "Softmax by hand becomes one kernel",
                "lesson": "Five operators read the scores five times; one kernel reads them once.",
                "lesson_name": "reductions_and_softmax",
                "source": "import torch\n",
            }
        },
    )

    name: str = Field(description="Unique among the examples.", examples=["softmax_by_hand"])
    title: str = Field(description="What it shows, in a few words.", examples=["Softmax by hand becomes one kernel"])
    lesson: str = Field(description="What to look at, and why: Markdown.")
    lesson_name: str | None = Field(
        default=None, description="The lesson that goes on from it, by its name.", examples=["round_trips"]
    )
    source: str = Field(description="The snippet, ready to be posted.", examples=["import torch\n"])


@lru_cache
def examples() -> tuple[Example, ...]:
    """All examples, from the first idea to the last: files are named so that their order is the order to read in."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.py")))


def _read(path: Path) -> Example:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree)
    if docstring is None:
        raise ValueError(f"{path} has no docstring to take its title and lesson from")
    title, _, lesson = docstring.partition("\n")
    lesson, _, lesson_name = lesson.partition("\nLesson: ")
    end_of_docstring = tree.body[0].end_lineno or 0
    source = "\n".join(text.splitlines()[end_of_docstring:]).strip() + "\n"
    _, _, name = path.stem.partition("_")
    return Example(
        name=name,
        title=title.strip().rstrip("."),
        lesson=lesson.strip(),
        lesson_name=lesson_name.strip() or None,
        source=source,
    )

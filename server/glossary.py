"""The glossary as data: `docs/glossary.md`, which is one table of words and what they mean."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

#: Where it is: in a wheel beside this file, in a checkout among the documents.
PLACES = (Path(__file__).parent / "glossary.md", Path(__file__).parents[1] / "docs" / "glossary.md")


class Term(BaseModel):
    """A word that the page uses, and what it means."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "example": {"words": ["warp", "lane"], "meaning": "32 threads of a GPU that go in step, and one of them."}
        },
    )

    words: list[str] = Field(description="The word, or several that are told of together.", examples=[["warp", "lane"]])
    meaning: str = Field(description="What it means: Markdown, in a line.", examples=["32 threads that go in step"])


@lru_cache
def glossary() -> tuple[Term, ...]:
    """Every term, in the glossary's order; none where the glossary is not installed."""
    found = next((path for path in PLACES if path.is_file()), None)
    return () if found is None else tuple(_terms(found.read_text(encoding="utf-8")))


def _terms(text: str) -> list[Term]:
    rows = [line.strip().strip("|").split("|", 1) for line in text.splitlines() if line.startswith("|")]
    return [
        Term(words=[word.strip() for word in words.split(",")], meaning=meaning.strip())
        for words, meaning in (row for row in rows[2:] if len(row) == 2)
    ]

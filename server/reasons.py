"""The compiler's closed list of reasons, for readers of decisions.

The list belongs to the compiler, and its pages are `docs/reasons/<id>.md`; here they are only turned into JSON.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from compiler.pages import page_of, sentences

_EXAMPLE: JsonDict = {
    "id": "shape.numel",
    "family": "shape",
    "sentence": "They have different numbers of elements: {a_numel} and {b_numel}.",
}


class ReasonEntry(BaseModel):
    """One reason why two nodes were fused or not; `family` groups reasons that are about the same thing."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    id: str = Field(description="As decisions name it.", examples=["shape.numel"])
    family: str = Field(description="The group of reasons that it belongs to.", examples=["shape"])
    sentence: str = Field(
        description="What it says, with the names of its numbers in braces.",
        examples=["They have different numbers of elements: {a_numel} and {b_numel}."],
    )


class ReasonPage(ReasonEntry):
    """A reason with its page."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE | {"page": "# shape.numel\n\n## What to do\n"}})

    page: str = Field(
        description="What it means, an example that leaves it, and what to do: Markdown.",
        examples=["# shape.numel\n\n## What to do\n\n..."],
    )


def reasons() -> dict[str, ReasonEntry]:
    """Every reason by its id."""
    return {
        reason: ReasonEntry(id=reason, family=reason.partition(".")[0], sentence=sentence)
        for reason, sentence in sorted(sentences().items())
    }


def with_page(reason: ReasonEntry) -> ReasonPage:
    return ReasonPage(**reason.model_dump(), page=page_of(reason.id))

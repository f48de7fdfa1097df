"""The compiler's closed list of reasons, for readers of decisions.

The list belongs to the scheduler, and its pages are `docs/reasons/<id>.md`; here they are only turned into JSON.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

#: Where the pages are: in a wheel beside this file, in a checkout among the documents.
FOLDERS = (Path(__file__).parent / "reason_pages", Path(__file__).parents[1] / "docs" / "reasons")


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
    listed: dict[str, Any] = importlib.import_module("compiler.schedule.records.reasons").REASONS
    return {
        name: ReasonEntry(id=str(reason.id), family=str(reason.family), sentence=str(reason.sentence))
        for name, reason in listed.items()
    }


def with_page(reason: ReasonEntry) -> ReasonPage:
    """The reason with its page, which is only its sentence where the pages are not installed."""
    paths = [folder / f"{reason.id}.md" for folder in FOLDERS]
    found = next((path for path in paths if path.is_file()), None)
    page = f"# {reason.id}\n\n{reason.sentence}\n" if found is None else found.read_text(encoding="utf-8")
    return ReasonPage(**reason.model_dump(), page=page)

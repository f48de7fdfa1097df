"""What a client may ask for."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from compiler.options import Options
from server.settings import MAX_SOURCE_BYTES


class ExplorationRequest(Options):
    """One snippet, and every option of the compiler."""

    source: str = Field(min_length=1, description="Python source, at most 64 KiB.")
    cache: Literal["use", "refresh"] = Field(
        default="use", description='"use" takes a stored report where there is one; "refresh" always runs again.'
    )
    based_on: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Id of an exploration of the same source, which the new one is linked to and compared with.",
    )

    @field_validator("source")
    @classmethod
    def _fits_and_is_text(cls, source: str) -> str:
        try:
            size = len(source.encode("utf-8"))
        except UnicodeEncodeError:
            raise ValueError("the source contains half of a character (a lone surrogate)") from None
        if size > MAX_SOURCE_BYTES:
            raise ValueError(f"the source has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted")
        if "\0" in source:
            raise ValueError("the source contains a NUL character, which Python does not allow")
        return source

    def options(self) -> Options:
        return Options.model_validate(self.model_dump(exclude={"source", "cache", "based_on"}))


class HighlightRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: str
    language: Literal["python", "cpp", "cuda", "ptx", "llvm", "text"] = "python"


class HighlightAnswer(BaseModel):
    """One piece of HTML a line. It holds only text and `span` elements with classes."""

    lines: list[str]

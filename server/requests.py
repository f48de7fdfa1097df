"""What a client may ask for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from compiler import wording
from compiler.options import InputSpec, KernelToCompile, Options, Sweep, Timing
from server.highlight import MAX_BYTES as MOST_COLOURED_BYTES
from server.settings import MAX_SOURCE_BYTES

EXAMPLE_SOURCE = """\
import torch


def softmax(scores: torch.Tensor) -> torch.Tensor:
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


softmax(torch.randn(64, 256))
"""


def _is_text(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it contains half of a character (a lone surrogate)") from None
    return value


Text = Annotated[str, AfterValidator(_is_text)]
"""What JSON calls a string may not be one: an escape may stand for half of a character."""


class ExplorationRequest(Options):
    """One snippet, and every option of the compiler."""

    model_config = ConfigDict(json_schema_extra={"example": {"source": EXAMPLE_SOURCE, "peer": False}})

    source: Text = Field(
        min_length=1,
        description="Python source of at most 64 KiB as UTF-8; a longer one is refused, not cut.",
        examples=[EXAMPLE_SOURCE],
    )
    cache: Literal["use", "refresh"] = Field(
        default="use", description='"use" takes a stored report where there is one; "refresh" always runs again.'
    )
    based_on: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Id of an exploration of the same source, which the new one is linked to and compared with.",
        examples=["0123456789abcdef0123"],
    )

    @field_validator("source")
    @classmethod
    def _fits_and_can_run(cls, source: str) -> str:
        size = len(source.encode("utf-8"))
        if size > MAX_SOURCE_BYTES:
            raise ValueError(f"the source has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted")
        if "\0" in source:
            raise ValueError("the source contains a NUL character, which Python does not allow")
        return source

    def options(self) -> Options:
        """What was validated as a part of the request is not validated again."""
        return Options.model_construct(**{name: getattr(self, name) for name in Options.model_fields})


class HighlightRequest(BaseModel):
    """A text that is wanted in colours."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"source": "x = 1", "language": "python"}})

    source: Text = Field(
        description=f"The text to colour, at most {MOST_COLOURED_BYTES // 1024} KiB as UTF-8; a longer one is refused.",
        examples=["x = 1"],
    )
    language: Literal["python", "cpp", "cuda", "ptx", "llvm", "gas", "text"] = Field(
        default="python", description="What the text is written in."
    )


class HighlightAnswer(BaseModel):
    """One piece of HTML a line. It holds only text and `span` elements with classes."""

    model_config = ConfigDict(json_schema_extra={"example": {"lines": ['<span class="n">x</span> = 1']}})

    lines: list[str] = Field(
        description="One for each line of the source.", examples=[['<span class="n">x</span> = 1']]
    )


_MODELS = (ExplorationRequest, InputSpec, Timing, Sweep, KernelToCompile, HighlightRequest)
_FIELDS = sorted({name for model in _MODELS for name in model.model_fields})


def said_of_fault(fault: Mapping[str, Any]) -> str:
    """What one of pydantic's errors says, in words for whoever wrote the request, and without what they wrote."""
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(fault["loc"][-1]), _FIELDS, 1)
        return "there is no such field" + (f"; perhaps {near[0]} is meant" if near else "")
    if fault["type"] == "json_invalid":
        return f"it is not JSON from character {fault['loc'][-1]} on: {fault['ctx']['error']}"
    if fault["type"] in ("too_short", "too_long"):
        about = fault["ctx"]
        bound = f"at least {about['min_length']}" if "min_length" in about else f"at most {about['max_length']}"
        return f"it must have {bound} values, and has {about['actual_length'] or 'more'}"
    return wording.said_of_fault(fault)

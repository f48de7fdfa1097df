"""What a graph is after lowering: loop nodes, and the nodes of FX that became none."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText


class Access(ReportModel):
    """A read or a write of one buffer: `index` is the element offset as a formula of the loop variables."""

    buffer: str = Field(description="The buffer that is read or written.")
    index: str = Field(
        description="The element offset as a formula of the loop variables, or that a call uses the whole buffer."
    )
    bytes: int = Field(description="Bytes of the elements that are touched. Each element counts once.")


class LoopNode(ReportModel):
    """A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line."""

    name: str = Field(description="Its name: the name of the buffer that it writes, or of its library call.")
    kind: Literal["pointwise", "reduction", "scan", "scatter", "extern", "view"] = Field(
        description="The kind of loop. extern is a library call."
    )
    sizes: list[SizeText] = Field(default=[], description="Trip counts of its loops, outermost first.")
    reduction_sizes: list[SizeText] = Field(default=[], description="Trip counts of its reduction loops.")
    dtype: str | None = Field(default=None, description="The dtype of what it writes, by torch's name.")
    shape: list[SizeText] | None = Field(default=None, description="Sizes of what it writes, outermost first.")
    body: list[str] = Field(default=[], description="Its body, one operation a line.")
    reads: list[Access] = Field(default=[], description="What it reads.")
    writes: list[Access] = Field(default=[], description="What it writes.")
    origins: list[str] = Field(default=[], description="FX nodes of `aten` that it came from.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it came from.")
    dead: bool = Field(default=False, description="Whether no result of the graph depends on it.")
    updates: str | None = Field(default=None, description="The buffer whose values a scatter begins with.")
    part_of: str | None = Field(default=None, description="The buffer that it fills a part of, with other nodes.")
    call: str | None = Field(
        default=None,
        description="The code of a library call. view(buffer, shape, stride, offset) is a part of a buffer.",
    )
    fallback: bool = Field(default=False, description="Whether it is an ATen call that we have no lowering for.")


class Removed(ReportModel):
    """A node that nothing had to be done for. It is one of `fx` if it is "dead", or a cast or a copy that returns its
    argument, which `aten` does not have; else it is one of `aten`."""

    kind: Literal["dead", "common_subexpression", "constant", "view", "cast", "copy"] = Field(
        description="Why nothing had to be done."
    )
    node: str = Field(description="The node that is gone.")
    because: str = Field(description="The reason in a sentence.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it came from.")

"""What a graph is after lowering: loop nodes, and the nodes of FX that became none."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText


class Access(ReportModel):
    """A read or a write of one buffer: `index` is the element offset as a formula of the loop variables."""

    buffer: str
    index: str
    bytes: int


class LoopNode(ReportModel):
    """A node of the loop IR. `sizes` and `reduction_sizes` are trip counts; `body` is one operation a line."""

    name: str
    kind: Literal["pointwise", "reduction", "scan", "scatter", "extern", "view"]
    sizes: list[SizeText] = []
    reduction_sizes: list[SizeText] = []
    dtype: str | None = None
    shape: list[SizeText] | None = None
    body: list[str] = []
    reads: list[Access] = []
    writes: list[Access] = []
    origins: list[str] = Field(default=[], description="FX nodes of `aten` that it came from.")
    lines: list[int] = []
    dead: bool = False
    fallback: bool = Field(default=False, description="True for an ATen call that we have no lowering for.")


class Removed(ReportModel):
    """A node that nothing had to be done for. It is one of `fx` where it is "dead", else of `aten`; in a
    training step also one that repeated another before forward and backward were split."""

    kind: Literal["dead", "common_subexpression", "constant", "view", "cast", "copy"]
    node: str
    because: str
    lines: list[int] = []

"""The tensors of a schedule, and which of them get the memory of which others."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText


class Buffer(ReportModel):
    """A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs)."""

    name: str
    shape: list[SizeText]
    stride: list[SizeText] = []
    dtype: str
    bytes: int
    first: int | None = None
    last: int | None = None
    fate: Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"]
    takes_over: str | None = Field(default=None, description="The buffer whose memory it gets.")
    note: str | None = None


class Reuse(ReportModel):
    """A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it
    writes the other."""

    buffer: str
    takes_over: str
    bytes: int
    in_place: bool


class Memory(ReportModel):
    """What the buffers of a graph take, its inputs not counted, in bytes.

    A peak is the most that is alive at one time. `unfused_*` is what a compiler that reuses memory but does not fuse
    would need: one kernel for each node, in the order in which they were written."""

    peak_bytes: int
    unordered_peak_bytes: int = Field(description="Our kernels in the order in which they were written.")
    without_reuse_bytes: int = Field(description="Every buffer of our kernels in memory of its own, none let go.")
    reuses: list[Reuse] = []
    unfused_peak_bytes: int
    unfused_without_reuse_bytes: int
    unfused_reuses: list[Reuse] = []
    live_bytes: list[int] = Field(default=[], description="What is alive while each kernel runs, and after the last.")
    unfused_live_bytes: list[int] = Field(default=[], description="The same without fusion, node by node.")
    unfused_buffers: list[Buffer] = Field(
        default=[], description="The plan without fusion; `first` and `last` are positions among the nodes not dead."
    )

"""The tensors of a schedule, and which of them get the memory of which others."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText


class Buffer(ReportModel):
    """A tensor of the schedule. `first` and `last` are positions in the order of kernels (-1 for inputs)."""

    name: str = Field(description="Its name.")
    shape: list[SizeText] = Field(description="Its sizes, outermost first.")
    stride: list[SizeText] = Field(default=[], description="Its strides, in elements.")
    dtype: str = Field(description="Its dtype by torch's name.")
    bytes: int = Field(description="Bytes of memory that it takes.")
    first: int | None = Field(default=None, description="Position of the kernel that writes it. An input has -1.")
    last: int | None = Field(
        default=None,
        description="Position of the last kernel that uses it. What the call leaves has the number of kernels.",
    )
    fate: Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"] = Field(
        description="What becomes of it. A register is never in memory."
    )
    takes_over: str | None = Field(default=None, description="The buffer whose memory it gets.")
    smallest: int | None = Field(default=None, description="The smallest value of integers that the graph is given.")
    largest: int | None = Field(default=None, description="The largest value of integers that the graph is given.")
    note: str | None = Field(default=None, description="A further remark.")


class Reuse(ReportModel):
    """A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it
    writes the other."""

    buffer: str = Field(description="The buffer that gets the memory.")
    takes_over: str = Field(description="The buffer whose memory it was.")
    bytes: int = Field(description="Bytes that this saves.")
    in_place: bool = Field(description="Whether one kernel reads the old buffer while it writes the new one.")


class Memory(ReportModel):
    """What the buffers of a graph take, its inputs not counted, in bytes.

    A peak is the most that is alive at one time. `unfused_*` is what a compiler that reuses memory but does not fuse
    would need: one kernel for each node, in the order in which they were written."""

    peak_bytes: int = Field(description="The most that is alive at one time.")
    unordered_peak_bytes: int = Field(description="The peak of our kernels in the order of the code.")
    without_reuse_bytes: int = Field(description="The sum of all buffers of our kernels.")
    reuses: list[Reuse] = Field(default=[], description="Buffers that get the memory of others.")
    unfused_peak_bytes: int = Field(description="The most that is alive at one time without fusion.")
    unfused_without_reuse_bytes: int = Field(description="The sum of all buffers without fusion.")
    unfused_reuses: list[Reuse] = Field(
        default=[], description="Buffers that would get the memory of others without fusion."
    )
    live_bytes: list[int] = Field(default=[], description="What is alive while each kernel runs, and after the last.")
    unfused_live_bytes: list[int] = Field(default=[], description="Bytes that are alive without fusion, node by node.")
    unfused_buffers: list[Buffer] = Field(
        default=[], description="The buffers without fusion, with positions among the nodes that are not dead."
    )

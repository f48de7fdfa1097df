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
    first: int | None = Field(default=None, description="Position of the kernel that writes it; -1 for an input.")
    last: int | None = Field(default=None, description="Position of the last kernel that reads it.")
    fate: Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"] = Field(
        description="What becomes of it; register is never in memory."
    )
    takes_over: str | None = Field(default=None, description="The buffer whose memory it gets.")
    smallest: int | None = Field(default=None, description="Of integers that the graph is given: the smallest one.")
    largest: int | None = Field(default=None, description="Of integers that the graph is given: the largest one.")
    note: str | None = Field(default=None, description="What else is to be said of it.")


class Reuse(ReportModel):
    """A buffer in the memory of another one that is no longer needed; `in_place` if one kernel reads the one while it
    writes the other."""

    buffer: str = Field(description="The buffer that gets the memory.")
    takes_over: str = Field(description="The buffer whose memory it was.")
    bytes: int = Field(description="Bytes that this spares.")
    in_place: bool = Field(description="Whether one kernel reads the one while it writes the other.")


class Memory(ReportModel):
    """What the buffers of a graph take, its inputs not counted, in bytes.

    A peak is the most that is alive at one time. `unfused_*` is what a compiler that reuses memory but does not fuse
    would need: one kernel for each node, in the order in which they were written."""

    peak_bytes: int = Field(description="The most that is alive at one time.")
    unordered_peak_bytes: int = Field(description="Our kernels in the order in which they were written.")
    without_reuse_bytes: int = Field(description="Every buffer of our kernels in memory of its own, none let go.")
    reuses: list[Reuse] = Field(default=[], description="Buffers that get the memory of others.")
    unfused_peak_bytes: int = Field(description="The most that is alive at one time without fusion.")
    unfused_without_reuse_bytes: int = Field(description="Every buffer in memory of its own without fusion.")
    unfused_reuses: list[Reuse] = Field(
        default=[], description="Buffers that would get the memory of others without fusion."
    )
    live_bytes: list[int] = Field(default=[], description="What is alive while each kernel runs, and after the last.")
    unfused_live_bytes: list[int] = Field(default=[], description="The same without fusion, node by node.")
    unfused_buffers: list[Buffer] = Field(
        default=[], description="The plan without fusion; `first` and `last` are positions among the nodes not dead."
    )

"""The bytes that a graph moves between memory and a device, as sums whose every term can be looked up."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel


class TensorTraffic(ReportModel):
    """What one launch moves of one tensor: each element that it needs is read once and written once."""

    tensor: str
    read_bytes: int = 0
    written_bytes: int = 0


class LaunchTraffic(ReportModel):
    """What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that
    eager made the call for."""

    name: str
    node: str | None = None
    bytes: int
    tensors: list[TensorTraffic] = []
    lines: list[int] = []
    unseen: str = Field(
        default="", description="What a library call may move besides: `bytes` is then what it moves at least."
    )


class ExecutionTraffic(ReportModel):
    """What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`, and
    `library_bytes` that over the library calls among them, which move it at least."""

    bytes: int
    library_bytes: int = 0
    launches: list[LaunchTraffic] = []


EdgeFate = Literal["memory", "register", "read_saved", "recomputed", "shared_read"]


class EdgeTraffic(ReportModel):
    """One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that.

    Without fusion it costs `written_bytes` (once for all its readers; 0 where it is an input of the graph) and
    `read_bytes`. What became of it: "memory" it is written and read; "register" neither, the value stays in a register;
    "read_saved" it is written for others, this reader has the value; "recomputed" this reader computes it for itself;
    "shared_read" its kernel reads less of it for this reader, or nothing: another node of the kernel reads it anyway,
    or not all of it is needed."""

    tensor: str
    producer: str | None = Field(description="The loop node; None for an input or a constant.")
    consumer: str
    written_bytes: int
    read_bytes: int
    saved_read_bytes: int = Field(description="Of `read_bytes`, what the reader's kernel does not read for it.")
    fate: EdgeFate


class Traffic(ReportModel):
    """The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to
    run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels).

    Each is the sum of its launches, and a launch the sum of its tensors; `fused` is `unfused` less what is saved and
    more what is read besides. The floor is what any compiler must move: each
    element of an input that is used read once, each output written once."""

    eager: ExecutionTraffic | None = Field(
        default=None, description="Missing where the graph cannot be run on shapes alone."
    )
    unfused: ExecutionTraffic | None = None
    fused: ExecutionTraffic | None = None
    floor_bytes: int | None = None
    floor: list[TensorTraffic] = []
    edges: list[EdgeTraffic] = []
    saved_written_bytes: int = Field(default=0, description="Of tensors that fusion keeps out of memory.")
    saved_read_bytes: int = Field(default=0, description="Of `edges` whose reader needs no read of its own.")
    more_read_bytes: int = Field(
        default=0, description="What kernels read that their nodes alone would not: to compute values again."
    )

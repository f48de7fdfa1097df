"""The bytes that a graph moves between memory and a device, as sums whose every term can be looked up."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel


class TensorTraffic(ReportModel):
    """What one launch moves of one tensor: each element that it needs is read once and written once."""

    tensor: str = Field(description="The buffer.")
    read_bytes: int = Field(default=0, description="Bytes that are read of it.")
    written_bytes: int = Field(default=0, description="Bytes that are written of it.")


class LaunchTraffic(ReportModel):
    """What one launch moves. `name` is eager's ATen operator, a loop node, or a kernel; `node` is the node of `fx` that
    eager made the call for."""

    name: str = Field(description="Eager's operator, or the name of a loop node or of a kernel.")
    node: str | None = Field(default=None, description="The node of `fx` that eager made the call for.")
    bytes: int = Field(description="Bytes of all its tensors together.")
    tensors: list[TensorTraffic] = Field(default=[], description="What it moves of each tensor.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it came from.")
    unseen: str = Field(
        default="", description="What a library call may move besides. `bytes` is then the least that it moves."
    )


class ExecutionTraffic(ReportModel):
    """What a graph moves if it is run in one way, launch by launch, in order; `bytes` is the sum over `launches`, and
    `library_bytes` that over the library calls among them, which move it at least."""

    bytes: int = Field(description="Bytes of all launches together.")
    library_bytes: int = Field(default=0, description="Bytes of the library calls, which are the least that they move.")
    launches: list[LaunchTraffic] = Field(default=[], description="Each launch, in order.")


EdgeFate = Literal["memory", "register", "read_saved", "recomputed", "shared_read"]


class EdgeTraffic(ReportModel):
    """One tensor on its way from the node that makes it to a node that reads it, and what fusion saved of that.

    Without fusion it costs `written_bytes` (once for all its readers; 0 where it is an input of the graph) and
    `read_bytes`. What became of it: "memory" it is written and read; "register" neither, the value stays in a register;
    "read_saved" it is written for others, this reader has the value; "recomputed" this reader computes it for itself;
    "shared_read" its kernel reads less of it for this reader, or nothing: another node of the kernel reads it anyway,
    or not all of it is needed."""

    tensor: str = Field(description="The buffer.")
    producer: str | None = Field(description="The loop node that makes it. Null for an input or a constant.")
    consumer: str = Field(description="The loop node that reads it.")
    written_bytes: int = Field(description="Bytes that writing it takes without fusion, once for all readers.")
    read_bytes: int = Field(description="Bytes that this reader reads of it without fusion.")
    saved_read_bytes: int = Field(description="The part of `read_bytes` that the reader's kernel does not read for it.")
    fate: EdgeFate = Field(description="What fusion made of it.")


class Traffic(ReportModel):
    """The bytes that a graph moves between memory and a device, counted from shapes and not measured, in three ways to
    run it: eager (one kernel for each call), unfused (one for each loop node and library call), fused (our kernels).

    Each is the sum of its launches, and a launch the sum of its tensors; `fused` is `unfused` less what is saved and
    more what is read besides. The floor is what any compiler must move: each
    element of an input that is used read once, each output written once."""

    eager: ExecutionTraffic | None = Field(
        default=None, description="Eager PyTorch. Null if the graph cannot be run on shapes alone."
    )
    unfused: ExecutionTraffic | None = Field(
        default=None, description="One launch for each loop node and library call."
    )
    fused: ExecutionTraffic | None = Field(default=None, description="Our kernels.")
    floor_bytes: int | None = Field(default=None, description="Bytes that any compiler must move.")
    floor: list[TensorTraffic] = Field(default=[], description="The bytes of the floor, tensor by tensor.")
    edges: list[EdgeTraffic] = Field(default=[], description="Each tensor on its way to each of its readers.")
    saved_written_bytes: int = Field(default=0, description="Bytes of tensors that fusion keeps out of memory.")
    saved_read_bytes: int = Field(default=0, description="The sum of `saved_read_bytes` over `edges`.")
    more_read_bytes: int = Field(default=0, description="Bytes that kernels read only to compute values again.")

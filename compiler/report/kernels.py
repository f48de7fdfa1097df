"""What is launched: source, lines, launch parameters, resources, and where the values live."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from compiler.report.model import ReportModel


class KernelLine(ReportModel):
    """Where one line of a kernel comes from: `line` counts from 1 in the kernel's source."""

    line: int
    nodes: list[str] = []
    user_lines: list[int] = []


class KernelArtifact(ReportModel):
    """The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel."""

    language: Literal["triton", "cpp", "ptx"]
    target: str
    source: str
    lines: list[KernelLine] = []
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    config: dict[str, Any] = {}
    check: str | None = Field(default=None, description="How this rendering was checked, and with what result.")
    max_error: float | None = None


class TensorLoads(ReportModel):
    """What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of
    `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them."""

    tensor: str
    memory_bytes: int
    loaded_bytes: int


class KernelLevels(ReportModel):
    """Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured.

    Shared memory, registers and spills are the assembler's to say: see the kernel, or its `also` for the target."""

    target: str
    plan: Literal["pointwise", "persistent", "looped", "split", "team", "look_back", "batch", "product"]
    programs: int
    threads: int = Field(description="Of one program.")
    tile: dict[str, int] = Field(default={}, description="Elements of one program along each axis; of one step in r.")
    passes: int = Field(description="Over the reduction loops; 0 without any, 1 where all of r stays in registers.")
    loads: list[TensorLoads] = []
    missed_bytes: int = Field(
        default=0, description="Predicted: of what later passes load again, what the cache holds no more."
    )
    kept: list[str] = Field(default=[], description="Values of nodes that stay in registers and reach no memory.")
    combined: list[str] = Field(
        default=[], description="Values that the threads of a program combine, through shuffles and shared memory."
    )


class Kernel(ReportModel):
    """What is launched: one generated function or one library call.

    `reads`, `writes` are buffer names; `bytes` counts each read once and each written once. `registers` and `spills`
    (bytes) are per thread, `shared_bytes` per program; they come from the assembler; `predicted_us` from the cost
    model; `measured_us` from a device.
    """

    name: str
    kind: Literal["triton", "cpp", "extern"]
    nodes: list[str]
    origins: list[str] = []
    source: str
    language: Literal["python", "cpp"] = "python"
    lines: list[KernelLine] = []
    user_lines: list[int] = []
    reads: list[str] = []
    writes: list[str] = []
    bytes: int = 0
    flops: int | None = None
    grid: list[int] | None = None
    config: dict[str, Any] = {}
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    predicted_us: float | None = None
    measured_us: float | None = None
    gb_per_s: float | None = None
    percent_of_peak: float | None = None
    same_as: str | None = Field(
        default=None, description="The first kernel of the graph that is the same code but for names, if not this one."
    )
    levels: KernelLevels | None = Field(default=None, description="Of a generated kernel, where the target is a GPU.")
    also: list[KernelArtifact] = Field(default=[], description="The same kernel for other targets.")

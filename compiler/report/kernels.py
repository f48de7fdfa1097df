"""What is launched: source, lines, launch parameters, resources, and where the values live."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from compiler.report.model import ReportModel, example


class KernelLine(ReportModel):
    """Where one line of a kernel comes from: `line` counts from 1 in the kernel's source."""

    model_config = example(line=9, nodes=["sin"], user_lines=[4])

    line: int = Field(description="The line in the kernel's source, counted from 1.")
    nodes: list[str] = Field(default=[], description="Loop nodes that the line computes for.")
    user_lines: list[int] = Field(default=[], description="Lines of the snippet that it computes for.")


class KernelArtifact(ReportModel):
    """The Triton kernel compiled offline for `target`, or its C++ twin: a second rendering of the same kernel."""

    language: Literal["triton", "cpp", "ptx"] = Field(description="What it is written in.")
    target: str = Field(description="The target that it was generated for, such as sm_90.")
    source: str = Field(description="Its whole text.")
    lines: list[KernelLine] = Field(default=[], description="Where each line of `source` comes from.")
    registers: int | None = Field(default=None, description="Registers of a thread, from the assembler.")
    spills: int | None = Field(
        default=None, description="Bytes that a thread spills and loads again, from the assembler."
    )
    shared_bytes: int | None = Field(default=None, description="Shared bytes of a program, from the assembler.")
    config: dict[str, Any] = Field(default={}, description="The settings that it was generated with, by name.")
    check: str | None = Field(default=None, description="How this rendering was checked, and with what result.")
    max_error: float | None = Field(default=None, description="The largest relative error that the check found.")


class TensorLoads(ReportModel):
    """What a kernel loads of one tensor: `memory_bytes`, each element once, come from memory; the rest of
    `loaded_bytes` are loads of elements that were loaded before, which caches give while they hold them."""

    tensor: str = Field(description="The buffer that is loaded.")
    memory_bytes: int = Field(description="Bytes that come from memory. Each element counts once.")
    loaded_bytes: int = Field(description="Bytes of all loads. An element that is loaded again counts again.")


class KernelLevels(ReportModel):
    """Where the values of a kernel live, by the plan of its Triton kernel for `target`: counted, not measured.

    Shared memory, registers and spills are the assembler's to say: see the kernel, or its `also` for the target."""

    target: str = Field(description="The GPU whose plan it is, such as sm_90.")
    plan: Literal["pointwise", "persistent", "looped", "split", "team", "look_back", "batch", "product"] = Field(
        description="How the kernel goes through its loops."
    )
    programs: int = Field(description="How many programs run.")
    threads: int = Field(description="Threads of one program.")
    tile: dict[str, int] = Field(default={}, description="Elements of a program along each axis. Along r, of one step.")
    passes: int = Field(description="Passes over the reduction loops. 1 if all of r stays in registers.")
    loads: list[TensorLoads] = Field(default=[], description="What the kernel loads of each tensor.")
    missed_bytes: int = Field(
        default=0, description="Predicted bytes that later passes load again and that the cache no longer holds."
    )
    kept: list[str] = Field(default=[], description="Values of nodes that stay in registers and reach no memory.")
    combined: list[str] = Field(
        default=[], description="Values that the threads of a program combine, through shuffles and shared memory."
    )


class KernelStep(ReportModel):
    """One call among those that a launch consists of: a function of the kernel's source, or a library call."""

    function: str | None = Field(default=None, description="The function of `source`. Null for a library call.")
    buffers: list[str] = Field(default=[], description="The buffers that the function gets, in order.")
    call: str | None = Field(default=None, description="The loop node whose library call it is.")


class TileDescriptor(ReportModel):
    """A matrix that a kernel gets as a descriptor of its tiles, as Triton's TensorDescriptor; all in elements."""

    buffer: str = Field(description="The buffer that it describes.")
    shape: tuple[int, int] = Field(description="Rows and columns of the matrix.")
    strides: tuple[int, int] = Field(description="Elements from one row to the next, and from one column to the next.")
    tile: tuple[int, int] = Field(description="Rows and columns of a tile.")


class UserArgument(ReportModel):
    """What a Triton kernel of the snippet's gets in one position."""

    type: str = Field(description="The type as Triton writes it, such as *fp32 or i32.")
    is_divisible: bool = Field(default=False, description="Whether an address or a number is a multiple of 16.")


class UserKernel(ReportModel):
    """With what a Triton kernel of the snippet's own is launched. It runs on copies of what it writes to.

    `measured_us` is then of the launch alone, and `bytes` of the call: which of them the kernel moves itself is not
    known, so there is no `gb_per_s`."""

    function: str = Field(description="The function with `@triton.jit`, in the kernel's source.")
    arguments: list[UserArgument] = Field(default=[], description="The arguments that are no constants, in order.")
    constants: dict[str, int] = Field(default={}, description="The constants. A number that is 1 is a constant.")
    launch: dict[str, int] = Field(default={}, description="Triton's options of the first configuration.")
    problem: str | None = Field(default=None, description="Why it cannot be compiled by itself, in a sentence.")


class Kernel(ReportModel):
    """What is launched: one generated function or one library call. A generated one gets `reads`, then `writes`, then
    `sizes`.

    `reads`, `writes` are buffer names; `bytes` counts each read once and each written once. `registers` and `spills`
    (bytes) are per thread, `shared_bytes` per program; they come from the assembler; `predicted_us` from the cost
    model; `measured_us` from a device.
    """

    name: str = Field(
        description="The name of its function, unique among generated kernels, or the operator of a library call."
    )
    kind: Literal["triton", "cpp", "extern"] = Field(description="Its language. extern is a library call.")
    nodes: list[str] = Field(description="The loop nodes that were fused into it. It computes all but `left_out`.")
    left_out: list[str] = Field(
        default=[], description="Those of `nodes` that only other kernels compute, where they need them."
    )
    computes_again: list[str] = Field(
        default=[], description="Loop nodes of other kernels that it computes too, rather than read their values."
    )
    origins: list[str] = Field(default=[], description="The nodes of `aten` behind the loop nodes that it computes.")
    source: str = Field(description="Its whole text.")
    language: Literal["python", "cpp"] = Field(
        default="python", description="The language of `source`, for highlighting."
    )
    lines: list[KernelLine] = Field(default=[], description="Where each line of `source` comes from.")
    user_lines: list[int] = Field(default=[], description="Lines of the snippet that it computes for.")
    reads: list[str] = Field(default=[], description="Buffers that it reads.")
    writes: list[str] = Field(default=[], description="Buffers that it writes.")
    bytes: int = Field(default=0, description="Bytes that it moves. Each read counts once, and each write counts once.")
    flops: int | None = Field(
        default=None,
        description="Floating-point operations. An element of an operation or of a reduction counts as one, a "
        "pair of a product as two. Null if unknown.",
    )
    grid: list[int] | None = Field(
        default=None, description="Programs along each axis of the launch. Null for C++ and library calls."
    )
    config: dict[str, Any] = Field(
        default={},
        description="The settings that it was generated with, such as tile sizes and warps, by name.",
    )
    registers: int | None = Field(default=None, description="Registers of a thread, from the assembler.")
    spills: int | None = Field(
        default=None, description="Bytes that a thread spills and loads again, from the assembler."
    )
    shared_bytes: int | None = Field(default=None, description="Shared bytes of a program, from the assembler.")
    predicted_us: float | None = Field(default=None, description="Microseconds that the cost model expects.")
    measured_us: float | None = Field(
        default=None, description="Microseconds of the kernel alone on the device: the median of all samples."
    )
    spread_us: float | None = Field(
        default=None, description="How much `measured_us` of another run may differ, in 95 of 100 runs."
    )
    gb_per_s: float | None = Field(
        default=None,
        description="10^9 bytes a second: `bytes` divided by `measured_us`. Null where `steps` has a library call.",
    )
    percent_of_peak: float | None = Field(
        default=None, description="`gb_per_s` as a percentage of the device's memory bandwidth. Null on a CPU."
    )
    sizes: dict[str, int] = Field(
        default={},
        description="Open sizes that a launch passes after the buffers, with their values in the first call.",
    )
    updates: list[str] = Field(default=[], description="The buffers of `writes` whose values before the launch matter.")
    steps: list[KernelStep] = Field(
        default=[], description="The calls that a launch of a product on a CPU consists of, in order."
    )
    descriptors: list[TileDescriptor] = Field(default=[], description="Buffers that are passed as descriptors.")
    same_as: str | None = Field(
        default=None, description="The first kernel of the graph with the same code, except for names."
    )
    own: UserKernel | None = Field(
        default=None,
        description="How the call launches a Triton kernel of the snippet, whose text is `source`.",
    )
    levels: KernelLevels | None = Field(default=None, description="Where the values of a generated GPU kernel live.")
    also: list[KernelArtifact] = Field(default=[], description="The same kernel for other targets.")

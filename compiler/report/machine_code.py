"""What compilers make of one kernel, from its text down to the machine's instructions, for one target."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, example

LevelName = Literal["ttir", "ttgir", "llvm", "ptx", "sass", "amdgcn", "assembly"]
InstructionKind = Literal["memory", "arithmetic", "matrix", "control", "synchronisation", "other"]


class CodeLevel(ReportModel):
    """The kernel in one of the languages that it goes through.

    `lines` are pairs: a line of `text` and the line of the kernel's source that it comes from, both counted from 1.
    Code of a function that was inlined belongs to the line of the source that calls it.
    """

    model_config = example(name="ttir", text="module {\n  tt.return\n}\n", lines=[(2, 14)], all_lines=3)

    name: LevelName = Field(description="The language.")
    text: str = Field(description="The code, without debug sections.")
    lines: list[tuple[int, int]] = Field(default=[], description="Pairs of a line of `text` and a line of the source.")
    all_lines: int = Field(description="Lines before the text was cut.")
    cut: str | None = Field(default=None, description="What was left out at the end, in a sentence.")


class MemoryAccess(ReportModel):
    """One load or store in the machine's code."""

    model_config = example(line=40, source_line=20, instruction="LDG.E.128", space="global", bits=128)

    line: int = Field(description="Its line in the text of the last level.")
    source_line: int | None = Field(default=None, description="The line of the kernel's source, if known.")
    instruction: str = Field(description="Name of the instruction, with the parts that change its meaning.")
    space: Literal["global", "shared", "local", "constant", "other"] = Field(description="The kind of memory.")
    is_store: bool = Field(default=False, description="Whether it writes.")
    bits: int | None = Field(default=None, description="Bits of one thread. Null if many threads share one access.")


class OccupancyLimit(ReportModel):
    """How many programs one resource has room for on a multiprocessor."""

    by: Literal["registers", "shared memory", "warps", "programs"] = Field(description="The resource.")
    programs: int = Field(description="Programs that it has room for.")


class Occupancy(ReportModel):
    """How many warps a multiprocessor holds of this kernel at most, by NVIDIA's rules: computed, not measured."""

    model_config = example(warps=32, most_warps=64, percent=50.0, programs=8, limited_by=["registers"], source="...")

    warps: int = Field(description="Warps of the kernel that a multiprocessor holds at once.")
    most_warps: int = Field(description="Warps that the multiprocessor has room for.")
    percent: float = Field(description="`warps` as a percentage of `most_warps`.")
    programs: int = Field(description="Programs of the kernel that a multiprocessor holds at once.")
    limits: list[OccupancyLimit] = Field(default=[], description="What each resource allows.")
    limited_by: list[str] = Field(description="The resources that allow the fewest programs.")
    source: str = Field(description="Where the rules and the limits are written.")


class VectorLoop(ReportModel):
    """An innermost loop of a C++ kernel in the compiler's assembly."""

    model_config = example(first=12, last=30, source_lines=[9, 10], packed=8, scalar=0, bits=512)

    first: int = Field(description="Its first line in the assembly.")
    last: int = Field(description="Its last line: the jump back.")
    source_lines: list[int] = Field(default=[], description="Lines of the kernel's source that are computed in it.")
    packed: int = Field(description="Floating-point instructions on vectors.")
    scalar: int = Field(description="Floating-point instructions on one number.")
    bits: int = Field(default=0, description="Bits of the widest vector register in it. 0 if there is none.")


class VectorRemark(ReportModel):
    """What the C++ compiler says of a loop, in its own words."""

    line: int = Field(description="The line of the kernel's source.")
    is_vectorised: bool = Field(description="Whether the compiler used vector instructions.")
    message: str = Field(description="The compiler's words.")


class Pass(ReportModel):
    """One step of Triton that changed the kernel: what went out and what came in, as a unified diff."""

    level: LevelName = Field(description="The language that it works on.")
    name: str = Field(description="Its name in MLIR.")
    diff: str = Field(description="The changed lines with two lines around them. A long diff is cut.")


class MachineCode(ReportModel):
    """One kernel compiled for one target, on no device: every level of its code, and what the last one says.

    Registers and spills (bytes) are of a thread, shared memory of a program.
    """

    kernel: str = Field(description="Its function's name.")
    language: Literal["triton", "cpp"] = Field(description="What its source is written in.")
    target: str = Field(description="What it was compiled for: sm_90, gfx942, or host for this machine's processor.")
    levels: list[CodeLevel] = Field(default=[], description="Every level of its code, from the kernel's source down.")
    threads: int | None = Field(default=None, description="Threads of a program.")
    registers: int | None = Field(default=None, description="Registers of a thread. On an AMD GPU vector registers.")
    spills: int | None = Field(default=None, description="Bytes that a thread spills and loads again.")
    shared_bytes: int | None = Field(default=None, description="Bytes of shared memory of a program.")
    occupancy: Occupancy | None = Field(default=None, description="Null if the device's rules are not known.")
    instructions: dict[InstructionKind, int] = Field(
        default={}, description="Instructions of the last level by what they do. Each counts once, as it is written."
    )
    accesses: list[MemoryAccess] = Field(default=[], description="Loads and stores of the last level, in order.")
    matrix_instructions: list[str] = Field(
        default=[], description="The different instructions of matrix units. Empty if they are not used."
    )
    loops: list[VectorLoop] = Field(default=[], description="The innermost loops of a C++ kernel.")
    remarks: list[VectorRemark] = Field(default=[], description="What the compiler says of the loops of a C++ kernel.")
    passes: list[Pass] = Field(default=[], description="The steps of Triton that changed the kernel.")
    notes: list[str] = Field(default=[], description="What is missing and why, in sentences.")

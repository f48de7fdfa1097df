"""Compiling a Triton kernel for a GPU that is not there: PTX, registers, spills, and the way back to the source.

Triton and the assembler that its wheel brings need no GPU and no driver.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime.triton.assembler import taken, without_limit
from compiler.runtime.triton.code_texts import SourceFile, located_by_directives
from compiler.runtime.triton.library import library_options
from compiler.runtime.triton.source import (
    LIMIT,
    POINTERS,
    block_sizes,
    described,
    file_name,
    kernel_namespace,
    launch_options,
    workspace_of,
)

# Triton's own code is warned of by Python 3.13, in the output of whoever compiles with it and can do nothing about it.
warnings.filterwarnings("ignore", category=FutureWarning, module=r"triton\.")


@dataclass(frozen=True)
class OfflineResult:
    """What a compilation gave; with `error` (a sentence) in place of it where it failed.

    `registers` and `spills` (bytes stored to and loaded from local memory) are per thread; `ptx_lines` maps lines of
    the PTX, counted from 1, to lines of the kernel's source; `seconds` is the time of the whole compilation.
    """

    target: str
    ptx: str = ""
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    seconds: float = 0.0
    ptx_lines: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    error: str | None = None


def compile_offline(kernel: RenderedKernel, storage: dict[str, torch.dtype], target: str = "sm_90") -> OfflineResult:
    """Compile `kernel` for `target`. Pointers are taken as divisible by 16, as the launcher makes sure they are."""
    from compiler.runtime.triton.cache import without_binary

    started = time.perf_counter()
    try:
        with without_binary():  # the assembler runs once, below, and tells what it made
            compiled = _compile(kernel, storage, target)
        limit = kernel.config.get(LIMIT)
        ptx, assembled = as_launched(compiled.asm["ptx"], None if limit is None else int(str(limit)))
        if assembled.binary is None:
            _compile(kernel, storage, target)  # raises what Triton says of the assembler's refusal
    except Exception as error:  # whatever stops the compiler is a result
        return OfflineResult(target, seconds=time.perf_counter() - started, error=_sentence(error))
    return OfflineResult(
        target,
        ptx,
        assembled.registers,
        assembled.spills,
        int(compiled.metadata.shared),
        time.perf_counter() - started,
        ptx_lines(ptx, source_file(kernel)),
    )


def _compile(kernel: RenderedKernel, storage: dict[str, torch.dtype], target: str) -> Any:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from compiler.runtime.triton.cache import through_cache
    from compiler.runtime.triton.targets import compile_for

    pointers = {argument_name(kernel, n): POINTERS[storage[name]] for n, name in enumerate(kernel.parameters)}
    descriptors = described(kernel)
    for position, descriptor in descriptors.items():
        element = POINTERS[storage[descriptor.parameter]].removeprefix("*")
        pointers[argument_name(kernel, position)] = f"tensordesc<{element}{list(descriptor.tile)}>"
    if workspace_of(kernel) is not None:
        pointers |= {"workspace_ptr": "*u8", "counters_ptr": "*i32"}
    sizes = {atom.name: "i64" for atom in kernel.sizes}
    blocks = block_sizes(kernel)
    source = ASTSource(
        fn=kernel_namespace(kernel)[kernel.name],
        signature={**pointers, **sizes, **dict.fromkeys(blocks, "constexpr")},
        constexprs=dict(blocks),
        attrs={(n,): [["tt.divisibility", 16]] for n in range(len(pointers)) if n not in descriptors},
    )
    options = launch_options(kernel) | library_options(kernel.source, (storage[name] for name in kernel.parameters))
    capability = int(target.removeprefix("sm_").rstrip("af"))
    return through_cache(lambda: compile_for(GPUTarget("cuda", capability, 32), source, options))


def argument_name(kernel: RenderedKernel, position: int) -> str:
    """The kernel's name for its argument number `position`."""
    return str(kernel_namespace(kernel)[kernel.name].arg_names[position])


def _sentence(error: Exception) -> str:
    """The error without its listing of the source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"


@dataclass(frozen=True)
class Assembled:
    """What NVIDIA's assembler made of a kernel, and says of it: registers of a thread, bytes that one spills to local
    memory and loads again. All None where no assembler is at hand.

    (The loaded kernel's own figures need a GPU, and `cuobjdump` gives the stack but not the spills.)"""

    registers: int | None = None
    spills: int | None = None
    binary: bytes | None = field(default=None, repr=False)


def assemble(ptx: str) -> Assembled:
    """Assemble the kernel in `ptx`, with the numbers of its lines."""
    found = re.search(r"\.target\s+(\w+)", ptx)
    assembler = _assembler(found[1]) if found is not None else None
    if found is None or assembler is None:
        return Assembled()
    with tempfile.TemporaryDirectory(prefix="fusionscope-") as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        binary = path.with_suffix(".cubin")
        report = subprocess.run(
            [assembler, "-v", "-lineinfo", f"--gpu-name={found[1]}", str(path), "-o", str(binary)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ).stderr
        return Assembled(*taken(report), binary.read_bytes() if binary.exists() else None)


def as_launched(ptx: str, limit: int | None) -> tuple[str, Assembled]:
    """The kernel in `ptx`, assembled as `stages` does: with its `limit` of registers only where it takes more
    by itself, and spills nothing for it."""
    free = without_limit(ptx)
    assembled = assemble(free)
    if limit is None or assembled.registers is None or assembled.registers <= limit:
        return free, assembled
    limited = assemble(ptx)
    return (free, assembled) if limited.spills else (ptx, limited)


def _assembler(target: str) -> str | None:
    import triton

    capability = int(re.sub(r"\D", "", target))
    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    path = folder / ("ptxas-blackwell" if capability >= 100 else "ptxas")
    return str(path) if path.exists() else None


def source_file(kernel: RenderedKernel) -> SourceFile:
    """The kernel's source as it is named in what it is compiled to."""
    return SourceFile.of(file_name(kernel), kernel.source)


def ptx_lines(ptx: str, file: SourceFile) -> tuple[tuple[int, int], ...]:
    """(PTX line, line of `file`) for every instruction that has one."""
    located = enumerate(located_by_directives(ptx, file), start=1)
    return tuple((number, line) for number, (text, line) in located if line is not None and _INSTRUCTION.match(text))


_INSTRUCTION = re.compile(r"\s+[^\s.].*;\s*$")

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
from compiler.runtime.assembler import taken, without_limit
from compiler.runtime.triton_library import library_options
from compiler.runtime.triton_source import (
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
    started = time.perf_counter()
    try:
        compiled = _compile(kernel, storage, target)
        limited = compiled.asm["ptx"]
        ptx = without_limit(limited)
        registers, spills = assemble(ptx)
        if registers is not None and registers > int(str(kernel.config.get(LIMIT, registers))):
            # As `triton_stages` does.
            found = assemble(limited)
            ptx, registers, spills = (ptx, registers, spills) if found[1] else (limited, *found)
    except Exception as error:  # whatever stops the compiler is a result
        return OfflineResult(target, seconds=time.perf_counter() - started, error=_sentence(error))
    return OfflineResult(
        target,
        ptx,
        registers,
        spills,
        int(compiled.metadata.shared),
        time.perf_counter() - started,
        ptx_lines(ptx, file_name(kernel)),
    )


def _compile(kernel: RenderedKernel, storage: dict[str, torch.dtype], target: str) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from compiler.runtime.triton_cache import through_cache

    pointers = {argument_name(kernel, place): POINTERS[storage[name]] for place, name in enumerate(kernel.parameters)}
    descriptors = described(kernel)
    for place, descriptor in descriptors.items():
        element = POINTERS[storage[descriptor.parameter]].removeprefix("*")
        pointers[argument_name(kernel, place)] = f"tensordesc<{element}{list(descriptor.tile)}>"
    if workspace_of(kernel) is not None:
        pointers |= {"workspace_ptr": "*u8", "counters_ptr": "*i32"}
    sizes = {atom.name: "i64" for atom in kernel.sizes}
    blocks = block_sizes(kernel)
    source = ASTSource(
        fn=kernel_namespace(kernel)[kernel.name],
        signature={**pointers, **sizes, **dict.fromkeys(blocks, "constexpr")},
        constexprs=dict(blocks),
        attrs={(place,): [["tt.divisibility", 16]] for place in range(len(pointers)) if place not in descriptors},
    )
    options = launch_options(kernel) | library_options(kernel.source, (storage[name] for name in kernel.parameters))
    capability = int(target.removeprefix("sm_").rstrip("af"))
    return through_cache(lambda: triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options))


def argument_name(kernel: RenderedKernel, place: int) -> str:
    """The kernel's name for its argument number `place`."""
    return str(kernel_namespace(kernel)[kernel.name].arg_names[place])


def _sentence(error: Exception) -> str:
    """The error without its listing of the source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"


def assemble(ptx: str) -> tuple[int | None, int | None]:
    """Registers and bytes of spills of the kernel in `ptx`, as NVIDIA's assembler reports them; None, None where no
    assembler is at hand.

    (The loaded kernel's own figures need a GPU, and `cuobjdump` gives the stack but not the spills.)"""
    found = re.search(r"\.target\s+(\w+)", ptx)
    if found is None:
        return None, None
    assembler = _assembler(found[1])
    if assembler is None:
        return None, None
    with tempfile.TemporaryDirectory(prefix="fusionscope-") as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        report = subprocess.run(
            [assembler, "-v", f"--gpu-name={found[1]}", str(path), "-o", str(path.with_suffix(".cubin"))],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ).stderr
    return taken(report)


def _assembler(target: str) -> str | None:
    import triton

    capability = int(re.sub(r"\D", "", target))
    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    path = folder / ("ptxas-blackwell" if capability >= 100 else "ptxas")
    return str(path) if path.exists() else None


_LOCATION = re.compile(
    r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:\s*,\s*function_name\s+\S+\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+\d+)?(.*)"
)


def ptx_lines(ptx: str, file: str) -> tuple[tuple[int, int], ...]:
    """(PTX line, line of `file`) for every instruction that has one.

    An instruction of an inlined function (tl.sum) belongs to the line that calls it; Triton writes the chain of calls
    as a comment behind the location: `// standard.py:293:36 @[ kernel.py:21:16 ]`."""
    files = {int(number): name for number, name in re.findall(r'\.file\s+(\d+)\s+"([^"]+)"', ptx)}
    found: list[tuple[int, int]] = []
    current: int | None = None
    for number, text in enumerate(ptx.splitlines(), start=1):
        location = _LOCATION.match(text)
        if location is not None:
            current = _line_in(location, files, file)
        elif current is not None and re.match(r"\s+[^\s.].*;\s*$", text):
            found.append((number, current))
    return tuple(found)


def _line_in(location: re.Match[str], files: dict[int, str], file: str) -> int | None:
    chain = re.findall(re.escape(file) + r":(\d+):\d+", location[5] or "")
    if chain:
        return int(chain[-1])
    if location[3] and files.get(int(location[3]), "").endswith(file):
        return int(location[4])
    return int(location[2]) if files.get(int(location[1]), "").endswith(file) else None

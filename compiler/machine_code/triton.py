"""Triton's levels of one kernel: what it hands from one of its compilers to the next, down to the machine's code.

NVIDIA's assembler and disassembler come with Triton, AMD's assembler is a part of it; none of them needs a GPU. What
is compiled is what a launch on that GPU would compile, by the same passes (see `runtime/triton/stages.py`).
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from compiler.codegen.triton.values.helpers import PTX_RECIPROCAL
from compiler.machine_code.instructions import of_level
from compiler.machine_code.occupancy import occupancy
from compiler.options import KernelToCompile
from compiler.report import MachineCode, Pass
from compiler.runtime.triton import code_texts as texts
from compiler.runtime.triton.assembler import without_limit
from compiler.runtime.triton.code_texts import SourceFile
from compiler.runtime.triton.offline import as_launched
from compiler.runtime.triton.text import TritonKernel, WrongKernel
from compiler.wording import counted

#: Lines of one pass's difference that are shown, and characters of all of them together.
MOST_DIFFERENT, MOST_OF_PASSES = 400, 400_000
#: Bytes of what the passes write that are read: each writes the whole kernel.
MOST_DUMPED = 48 * 2**20
_AMD_WARP = 64
#: What stands for NVIDIA's estimate of a reciprocal on an AMD GPU, in as many lines.
_AMD_RECIPROCAL = "(\n        1.0 / x\n    )"


def triton_levels(source: str, wanted: KernelToCompile) -> MachineCode:
    """Raises `WrongKernel`, and whatever Triton raises."""
    has_ptx = wanted.target.startswith("gfx") and PTX_RECIPROCAL in source
    if has_ptx:
        source = source.replace(PTX_RECIPROCAL, _AMD_RECIPROCAL)
    file = SourceFile.of(f"{wanted.name}-{hashlib.sha256(source.encode()).hexdigest()[:16]}.py", source)
    kernel = read_kernel(source, wanted, file.name)
    with _every_pass() as dump:
        compiled = compiled_by_triton(source, kernel, wanted.target)
    result = MachineCode(kernel=wanted.name, language="triton", target=wanted.target, notes=list(kernel.notes))
    if has_ptx:
        result.notes.append("An AMD GPU divides where the kernel has NVIDIA's instruction for an estimate of 1 / x.")
    result.threads = int(compiled.metadata.num_warps) * (_AMD_WARP if wanted.target.startswith("gfx") else 32)
    result.shared_bytes = int(compiled.metadata.shared)
    result.levels = [
        texts.level("ttir", texts.of_mlir(compiled.asm["ttir"], file)),
        texts.level("ttgir", texts.of_mlir(compiled.asm["ttgir"], file)),
        texts.level("llvm", texts.of_llvm(compiled.asm["llir"], file)),
    ]
    if "amdgcn" in compiled.asm:
        _add_amd(result, compiled.asm["amdgcn"], file)
    else:
        _add_nvidia(result, compiled.asm["ptx"], kernel.options.get("maxnreg"), file)
    result.passes = list(_passes(dump[0]))
    result.notes += _left_out(result.passes, dump[0])
    if result.levels[-1].name in ("sass", "amdgcn"):
        found = of_level(result.levels[-1])
        result.instructions, result.accesses = found.counts, found.accesses
        result.matrix_instructions = found.matrix
        result.notes += found.notes
    return result


def read_kernel(source: str, wanted: KernelToCompile, file: str) -> TritonKernel:
    """The kernel in the text, which is said to be in `file`. Raises `WrongKernel`, and whatever the text raises."""
    if wanted.language == "inductor":
        from compiler.peer import kernel_text

        return kernel_text.read_kernel(source, wanted.name, file)
    from compiler.runtime.triton.text import execute

    function: Any = execute(source, file, wanted.name).get(wanted.name)
    if not hasattr(function, "arg_names"):
        raise WrongKernel(f"The source has no function {wanted.name} with @triton.jit.")
    names = [name for name in function.arg_names if name not in wanted.constants]
    if unknown := set(wanted.constants) - set(function.arg_names):
        raise WrongKernel(f"{wanted.name} has no argument {min(unknown)}.")
    if len(names) != len(wanted.arguments):
        raise WrongKernel(
            f"{wanted.name} takes {counted(len(names), 'argument')} beside its constants, not {len(wanted.arguments)}."
        )
    types = dict(zip(names, wanted.arguments, strict=True))
    signature = {name: types[name].type if name in types else "constexpr" for name in function.arg_names}
    attributes = {
        (position,): [["tt.divisibility", 16]]
        for position, name in enumerate(function.arg_names)
        if name in types and types[name].is_divisible
    }
    options: dict[str, Any] = {**wanted.launch, "sanitize_overflow": False}
    options |= {name: bool(options[name]) for name in ("debug", "enable_fp_fusion") if name in options}
    return TritonKernel(function, signature, dict(wanted.constants), attributes, options)


def compiled_by_triton(source: str, kernel: TritonKernel, target: str) -> Any:
    """What Triton makes of it: `asm` has every level by its name, `metadata` what a launch needs."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from compiler.runtime.triton.cache import through_cache
    from compiler.runtime.triton.library import library_options
    from compiler.runtime.triton.targets import compile_for

    is_amd = target.startswith("gfx")
    gpu = GPUTarget("hip", target, _AMD_WARP) if is_amd else GPUTarget("cuda", int(target.removeprefix("sm_")), 32)
    pointers = [torch.float64] if "*fp64" in kernel.signature.values() else []
    libraries = {} if is_amd else library_options(source, pointers)
    text = ASTSource(kernel.function, kernel.signature, kernel.constants, kernel.attributes)
    return through_cache(lambda: compile_for(gpu, text, kernel.options | libraries))


def _add_nvidia(result: MachineCode, limited: str, limit: int | None, file: SourceFile) -> None:
    text, assembled = as_launched(texts.with_own_locations(limited, file), limit)
    # The text as Triton wrote it, but for the limit where that is not kept.
    ptx = limited if text != without_limit(text) else without_limit(limited)
    result.levels.append(texts.level("ptx", texts.of_ptx(ptx, file)))
    result.registers, result.spills = assembled.registers, assembled.spills
    if assembled.binary is None:
        result.notes.append(
            f"There is no SASS: no assembler for {result.target} came with Triton, or it refused the kernel."
        )
        return
    sass, problem = disassembled(assembled.binary)
    if problem is not None:
        result.notes.append(problem)
    else:
        result.levels.append(texts.level("sass", texts.of_sass(sass, file)))
    if assembled.registers is not None:
        assert result.threads is not None
        assert result.shared_bytes is not None
        result.occupancy = occupancy(result.target, result.threads, assembled.registers, result.shared_bytes)
        if result.occupancy is None:
            result.notes.append(f"The limits of a multiprocessor of {result.target} are not known here: no occupancy.")


def disassembled(binary: bytes) -> tuple[str, str | None]:
    """SASS; or why there is none."""
    import triton

    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    if not program.exists():
        return "", "There is no SASS: nvdisasm is not part of this Triton."
    with tempfile.TemporaryDirectory(prefix="fusionscope-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(binary)
        done = subprocess.run(
            [str(program), "-c", "-gi", str(path)], capture_output=True, text=True, timeout=120, check=False
        )
    if done.returncode != 0:
        return "", f"There is no SASS: nvdisasm says {done.stderr.strip()[:300]!r}."
    return done.stdout, None


def _add_amd(result: MachineCode, assembly: str, file: SourceFile) -> None:
    result.levels.append(texts.level("amdgcn", texts.of_assembly(assembly, file, ";")))
    registers = re.search(r"^; TotalNumVgprs: (\d+)", assembly, re.MULTILINE)
    spilled = re.search(r"\.vgpr_spill_count:\s*(\d+)", assembly)
    result.registers = int(registers[1]) if registers else None
    result.spills = 4 * int(spilled[1]) if spilled else None
    waves = re.search(r"^; Occupancy: (\d+)", assembly, re.MULTILINE)
    said = f" LLVM says {waves[1]} waves on each SIMD." if waves else ""
    result.notes.append(f"Occupancy is computed for NVIDIA's GPUs alone.{said}")


@contextmanager
def _every_pass() -> Iterator[list[str]]:
    """Within, MLIR writes the kernel before each of its passes to what is our error output; afterwards the list holds
    that text. A kernel that the cache has would go through none, so it is compiled anew."""
    asked = {"MLIR_ENABLE_DUMP": "1", "TRITON_ALWAYS_COMPILE": "1"}
    before = {name: os.environ.get(name) for name in asked}
    dump: list[str] = []
    real = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.environ.update(asked)
        os.dup2(file.fileno(), 2)
        try:
            yield dump
        finally:
            os.dup2(real, 2)
            os.close(real)
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            file.seek(0)
            dump.append(file.read(MOST_DUMPED).decode(errors="replace"))


_HEAD = re.compile(r"^// -----// IR Dump Before \w+ \(([\w-]+)\).*$", re.MULTILINE)
_TO_LLVM = re.compile(r"convert-triton-(?:amd)?gpu-to-llvm")


def _passes(dump: str) -> Iterator[Pass]:
    """Those that changed something, up to the one that leaves Triton's own languages for LLVM's."""
    pieces = _HEAD.split(dump)[1:]
    names, states = pieces[::2], [_readable(text) for text in pieces[1::2]]
    level: Any = "ttir"
    for name, before, after in zip(names, states, states[1:], strict=False):
        if _TO_LLVM.fullmatch(name):
            return
        level = "ttgir" if name == "convert-triton-to-tritongpu" else level
        changed = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
        if changed:
            more = (
                [f"... and {counted(len(changed) - MOST_DIFFERENT, 'more line')}"]
                if len(changed) > MOST_DIFFERENT
                else []
            )
            yield Pass(level=level, name=name, diff="\n".join(changed[:MOST_DIFFERENT] + more))


def _left_out(passes: list[Pass], dump: str) -> list[str]:
    """Takes the last passes away where there is too much of them; in a sentence, what is missing."""
    shown, characters = 0, 0
    for one in passes:
        characters += len(one.diff)
        shown += characters <= MOST_OF_PASSES
    left_out = len(passes) - shown
    del passes[shown:]
    if left_out or len(dump) >= MOST_DUMPED:
        return [f"Of the passes the first {shown} that changed something are shown: the others were too long."]
    return []


def _readable(text: str) -> list[str]:
    return [line for line, _ in texts.of_mlir(text, SourceFile("")) if line.strip() and not line.startswith("// ---")]

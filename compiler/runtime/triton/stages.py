"""The stages of a Triton kernel from text to binary, as our kernels use them.

Triton has a hook for who wants others. Ours has the assembler started before the first stage, and has it leave loops
alone that gain nothing from being written out. Else the assembler is told what Triton tells it, and the result is the
same to the last bit, but for kernels with a limit of registers (see `_assembled`). Where anything is not as it is known
here, or goes wrong, Triton goes its own way, and says what is wrong with its text.

The assembler unrolls a loop whose trip count it knows by a dozen and more. For tiles on tensor cores that takes half a
second and more, twenty times as long as the loop itself. A kernel's text marks loops that gain nothing from that by
`loop_unroll_factor=1` (see `codegen/triton/product.py`). Triton does not unroll such a loop, and tells neither LLVM nor
the assembler.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from compiler.accelerators import is_on
from compiler.runtime.triton.assembler import WaitingAssembler, without_limit

#: What versions of Triton tell the assembler besides what is said in `_arguments`; no other version is known here.
_OF_VERSION: dict[str, list[str]] = {"3.6": [], "3.7": ["--regAllocOptLevel=2"]}

#: What has the assembler leave the loop alone at whose first label it stands.
AS_IT_IS = '.pragma "nounroll";'

_LABEL = re.compile(r"^(\$\w+):[^\n]*\n", re.MULTILINE)
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")
_ON_TENSOR_CORES = re.compile(r"\b(?:wgmma\.mma_async|mma)\.sync\b")

_in_this_thread = threading.local()


def release_of_triton() -> str:
    """Which Triton this is, but for mended faults."""
    import triton

    return ".".join(str(triton.__version__).split(".")[:2])


@contextmanager
def assembler_started_early() -> Iterator[None]:
    """Within, each kernel that Triton compiles in this thread has its assembler started at once."""
    started: list[WaitingAssembler] = []
    _in_this_thread.started = started
    try:
        yield
    finally:
        _in_this_thread.started = None
        for one in started:
            one.close()


@contextmanager
def ending_with_text() -> Iterator[None]:
    """Within, what Triton compiles in this thread ends with the text for the assembler."""
    _in_this_thread.ends_with_text = True
    try:
        yield
    finally:
        _in_this_thread.ends_with_text = False


def ends_with_text() -> bool:
    return getattr(_in_this_thread, "ends_with_text", False)


def with_our_stages(
    backend: Any = None, stages: dict[str, Any] | None = None, options: Any = None, *_: Any
) -> tuple[str, str] | None:
    """Triton's hook, called with a kernel's stages by their names before the first of them. Asked without any, it tells
    what it changes in the kernel that comes out: nothing."""
    if stages is None:
        return "", ""
    started: list[WaitingAssembler] | None = getattr(_in_this_thread, "started", None)
    if ends_with_text():
        stages["cubin"] = lambda text, metadata: b""
    elif is_on("assembler_early") and started is not None and "cubin" in stages:
        _assemble_early(backend, stages, options, started)
    if is_on("loops_kept") and started is not None and {"ttgir", "ptx"} <= stages.keys():
        _keep_loops(stages)
    return None


def _keep_loops(stages: dict[str, Any]) -> None:
    to_second_form, to_text = stages["ttgir"], stages["ptx"]
    keeps_loops = False

    def looked_at(module: Any, metadata: dict[str, Any]) -> Any:
        nonlocal keeps_loops
        keeps_loops = has_loop_to_keep(module)
        return to_second_form(module, metadata)

    def with_loops(module: Any, metadata: dict[str, Any]) -> str:
        text: str = to_text(module, metadata)
        return with_loops_kept(text) if keeps_loops else text

    stages["ttgir"], stages["ptx"] = looked_at, with_loops


def _assemble_early(backend: Any, stages: dict[str, Any], options: Any, started: list[WaitingAssembler]) -> None:
    def start() -> WaitingAssembler:
        started.append(WaitingAssembler(lambda source, binary: [*arguments, source, "-o", binary]))
        return started[-1]

    limit = getattr(options, "maxnreg", None)
    try:
        arguments = _arguments(backend, options)
        waiting = start()
    except (UnknownAssembler, OSError):
        return
    in_tritons_way = stages["cubin"]
    stages["cubin"] = lambda text, metadata: _assembled(text, limit, waiting, start) or in_tritons_way(text, metadata)


def _assembled(
    text: str, limit: int | None, waiting: WaitingAssembler, start: Callable[[], WaitingAssembler]
) -> bytes | None:
    """The binary; with the kernel's limit of registers only where it takes more by itself, and spills nothing for the
    limit: given one, the assembler takes as many, also where it would do with fewer."""
    binary = waiting.assemble(text if limit is None else without_limit(text))
    registers, _ = waiting.taken
    if limit is None or binary is None or registers is None or registers <= limit:
        return binary
    other = start()
    with_limit = other.assemble(text)
    return with_limit if with_limit is not None and other.taken[1] == 0 else binary


def has_loop_to_keep(module: Any) -> bool:
    """Whether the kernel, in Triton's first form, multiplies tiles in a loop that is to be left alone."""
    operators: set[str] = set()
    module.walk(lambda operator: operators.add(operator.get_name()))
    return "tt.dot" in operators and "tt.loop_unroll_factor = 1 :" in str(module)


def with_loops_kept(ptx: str) -> str:
    """The text of a kernel whose innermost loops are kept as they are, where they multiply tiles on tensor cores."""
    if _ON_TENSOR_CORES.search(ptx) is None:
        return ptx
    starts = {label[1]: label.end() for label in _LABEL.finditer(ptx)}
    ends = {
        starts[branch[1]]: branch.end()
        for branch in _BRANCH.finditer(ptx)
        if starts.get(branch[1], branch.end()) < branch.end()
    }
    made, done = [], 0
    for start, end in sorted(ends.items()):
        is_innermost = not any(start < other < end for other in ends)
        if is_innermost and _ON_TENSOR_CORES.search(ptx, start, end) is not None:
            made += [ptx[done:start], f"\t{AS_IT_IS}\n"]
            done = start
    return "".join([*made, ptx[done:]])


class UnknownAssembler(Exception):
    """This Triton may tell its assembler what is not known here."""


def _arguments(backend: Any, options: Any) -> list[str]:
    """The assembler and what Triton would tell it of a kernel, but for the names of files. Raises UnknownAssembler."""
    from triton import knobs
    from triton.backends.nvidia import compiler as nvidia

    of_version = _OF_VERSION.get(release_of_triton())
    if of_version is None or knobs.nvidia.disable_ptxas_opt or knobs.nvidia.dump_ptxas_log:
        raise UnknownAssembler
    capability = backend.target.arch
    return [
        nvidia.get_ptxas(capability).path,
        *(["-lineinfo", "-suppress-debug-info"] if knobs.compilation.disable_line_info else ["-lineinfo"]),
        *([] if options.enable_fp_fusion else ["--fmad=false"]),
        "-v",
        *of_version,
        *(options.ptx_options.split(" ") if options.ptx_options else []),
        f"--gpu-name={nvidia.sm_arch_from_capability(capability)}",
    ]

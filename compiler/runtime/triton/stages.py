"""The stages of a Triton kernel from text to binary, as our kernels use them.

Triton has a hook for who wants others. Ours has the assembler started before the first stage, and has it leave loops
alone that gain nothing from being written out (see `product_loops`). Else the assembler is told what Triton tells it,
and the result is the same to the last bit, but for kernels with a limit of registers (see `_assembled`). Where anything
is not as it is known here, or goes wrong, Triton goes its own way, and says what is wrong with its text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from compiler.accelerators import is_on
from compiler.runtime.triton import product_loops
from compiler.runtime.triton.assembler import WaitingAssembler, without_limit

#: What versions of Triton tell the assembler besides what is said in `_arguments`; no other version is known here.
_OF_VERSION: dict[str, list[str]] = {"3.6": [], "3.7": ["--regAllocOptLevel=2"]}

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


def with_our_stages(
    backend: Any = None, stages: dict[str, Any] | None = None, options: Any = None, *_: Any
) -> tuple[str, str] | None:
    """Triton's hook, called with a kernel's stages by their names before the first of them. Asked without any, it tells
    what it changes in the kernel that comes out: nothing."""
    if stages is None:
        return "", ""
    started: list[WaitingAssembler] | None = getattr(_in_this_thread, "started", None)
    if is_on("assembler_early") and started is not None and "cubin" in stages:
        _assemble_early(backend, stages, options, started)
    if is_on("loops_kept") and started is not None and {"ttgir", "ptx"} <= stages.keys():
        _keep_loops(stages)
    return None


def _keep_loops(stages: dict[str, Any]) -> None:
    to_second_form, to_text = stages["ttgir"], stages["ptx"]
    keeps_loops = False

    def looked_at(module: Any, metadata: dict[str, Any]) -> Any:
        nonlocal keeps_loops
        keeps_loops = product_loops.has_loop_to_keep(module)
        return to_second_form(module, metadata)

    def with_loops(module: Any, metadata: dict[str, Any]) -> str:
        text: str = to_text(module, metadata)
        return product_loops.with_loops_kept(text) if keeps_loops else text

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

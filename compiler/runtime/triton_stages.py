"""The stages that Triton takes a kernel through, from its text to its binary, as our kernels want them.

Triton has a hook for who wants others. Ours has the assembler started before the first stage. What it is told is what
Triton tells it, and the result is the same to the last bit. Where anything is not as it is known here, or goes wrong,
Triton assembles in its own way, and says what is wrong with its text.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compiler.runtime.assembler import WaitingAssembler

#: What versions of Triton tell the assembler besides what is said in `_arguments`; no other version is known here.
_OF_VERSION: dict[str, list[str]] = {"3.6": [], "3.7": ["--regAllocOptLevel=2"]}

_in_this_thread = threading.local()


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
    if started is not None and "cubin" in stages:
        _assemble_early(backend, stages, options, started)
    return None


def _assemble_early(backend: Any, stages: dict[str, Any], options: Any, started: list[WaitingAssembler]) -> None:
    try:
        arguments = _arguments(backend, options)
        waiting = WaitingAssembler(lambda source, binary: [*arguments, source, "-o", binary])
    except (UnknownAssembler, OSError):
        return
    started.append(waiting)
    in_tritons_way = stages["cubin"]
    stages["cubin"] = lambda text, metadata: waiting.assemble(text) or in_tritons_way(text, metadata)


class UnknownAssembler(Exception):
    """This Triton may tell its assembler what is not known here."""


def _arguments(backend: Any, options: Any) -> list[str]:
    """The assembler and what Triton would tell it of a kernel, but for the names of files. Raises UnknownAssembler."""
    import triton
    from triton import knobs
    from triton.backends.nvidia import compiler as nvidia

    release = str(triton.__version__)
    of_version = _OF_VERSION.get(".".join(release.split(".")[:2]))
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

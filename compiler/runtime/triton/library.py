"""The library of device functions that a Triton kernel is linked with.

A kernel is linked with the functions that it calls, each from a file of its own (see `device_functions`), where it is
known which these are. Triton itself may take from libdevice what its own functions are made of (`tl.floor`), so a
kernel that calls one of Triton's that is not known here, or that computes in float64, is linked with libdevice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import torch

from compiler.accelerators import is_on
from compiler.runtime.triton.device_functions import ARGUMENTS, UnknownLibrary, function_files

#: What of Triton's language needs no function of a library.
_NEEDS_NONE = frozenset(
    """load store arange program_id where full zeros broadcast broadcast_to join sum max min reduce minimum maximum abs
    range static_range fma max_constancy PropagateNan constexpr pointer_type debug_barrier device_assert
    atomic_add atomic_cas atomic_max atomic_min zeros_like uint_to_uniform_float cdiv dot cumsum associative_scan
    inline_asm_elementwise int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32""".split()
)
#: Functions that `libdevice` calls by other names than CUDA does.
_OTHER_NAMES = {"fast_dividef": "fast_fdivide"}

#: What a text takes from Triton's language and from libdevice. A comment that spoke of more would cost no more than the
#: time to link it.
_USED = re.compile(r"\b(tl|libdevice)\.(\w+)")


def library_options(source: str, pointers: Iterable[torch.dtype]) -> dict[str, Any]:
    """Triton's options for the libraries of a kernel with this text and pointers to such elements; none for
    libdevice."""
    symbols = _symbols(source)
    if torch.float64 in pointers or not symbols or not is_on("device_functions"):
        return {}
    try:
        files = function_files(symbols)
    except (UnknownLibrary, OSError):  # the second where the disk is full
        return {}
    # Triton adds libdevice unless a library has its name.
    return {"extern_libs": dict(zip(("libdevice", *symbols[1:]), map(str, files), strict=True))}


@lru_cache(maxsize=512)
def _symbols(source: str) -> tuple[str, ...]:
    """The functions of libdevice that a kernel needs; none where that is not known."""
    used: dict[str, set[str]] = {"tl": set(), "libdevice": set()}
    for module, name in _USED.findall(source):
        used[module].add(name)
    called = {f"__nv_{_OTHER_NAMES.get(name, name)}f" for name in used["libdevice"]}
    if not called <= ARGUMENTS.keys() or not used["tl"] <= _NEEDS_NONE:
        return ()
    return tuple(sorted(called))

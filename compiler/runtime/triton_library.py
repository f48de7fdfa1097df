"""The library of device functions that a Triton kernel is linked with.

Triton takes every function from one file, libdevice, of half a megabyte; to read that takes as long as all the rest of
a small kernel's compilation. A kernel that wants no more of it than what `one_instruction.ll` has, functions that are
one instruction each, is linked with that file instead, and becomes the same instructions.

Triton itself may take from libdevice what its own functions are made of (`tl.floor`, `tl.umulhi`), so a kernel that
calls one of Triton's that is not known to need nothing is linked with libdevice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

#: LLVM's assembly text, which Triton reads as it reads libdevice.
FILE = Path(__file__).with_name("one_instruction.ll")

#: The functions that it defines, for float32, by the names that kernels call them by.
ONE_INSTRUCTION = frozenset("rsqrt sqrt exp2 fast_dividef rint".split())

#: What of Triton's language needs no function of a library.
_NEEDS_NONE = frozenset(
    """load store arange program_id where full zeros broadcast broadcast_to join sum max min reduce minimum maximum abs
    PropagateNan constexpr pointer_type debug_barrier atomic_add atomic_cas cdiv dot cumsum associative_scan
    int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32""".split()
)


def library_options(source: str, pointers: Iterable[torch.dtype]) -> dict[str, Any]:
    """Triton's options for the library of a kernel with this text and pointers to such elements; none for libdevice."""
    if torch.float64 in pointers or not _is_enough(source):
        return {}
    return {"extern_libs": {"libdevice": str(FILE)}}


@lru_cache(maxsize=512)
def _is_enough(source: str) -> bool:
    """Whether the kernel calls functions of libdevice, and none but those of one instruction."""
    used: dict[str, set[str]] = {"tl": set(), "libdevice": set()}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in used:
            used[node.value.id].add(node.attr)
    return bool(used["libdevice"]) and used["libdevice"] <= ONE_INSTRUCTION and used["tl"] <= _NEEDS_NONE

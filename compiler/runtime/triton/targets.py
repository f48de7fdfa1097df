"""Compiling for a GPU that may not be there, with answers about that one.

Triton's library asks the driver what the GPU can do (`cuda_capability_geq`). Without a driver a kernel would be
compiled without the conversions of float8 that its GPU has; and a process that helps to compile would start CUDA to be
told.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language import target_info

_in_this_thread = threading.local()
_driver_target = target_info.current_target


def compile_for(target: GPUTarget, source: ASTSource, options: Mapping[str, Any]) -> Any:
    """`triton.compile`, in which the library is told of `target`. Raises whatever Triton raises."""
    _in_this_thread.target = target
    try:
        return triton.compile(source, target=target, options=dict(options))
    finally:
        _in_this_thread.target = None


def _current_target() -> Any:
    return getattr(_in_this_thread, "target", None) or _driver_target()


_current_target.__triton_builtin__ = True  # type: ignore[attr-defined]
vars(target_info)["current_target"] = _current_target

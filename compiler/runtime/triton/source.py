"""A Triton kernel's text as a function, and what Triton is to know of it besides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel, TileDescriptor
from compiler.codegen.same_code import code_of
from compiler.ir.float8 import FLOAT8
from compiler.ir.formulas import FUNCTIONS
from compiler.ir.size import spelt_out
from compiler.options import ELEMENTS, LAUNCH_OPTIONS
from compiler.runtime.triton.text import execute

#: Triton's names of the pointers to elements of each dtype.
POINTERS: dict[torch.dtype, str] = {
    **{getattr(torch, dtype): f"*{element}" for dtype, element in ELEMENTS.items()},
    **dict.fromkeys(FLOAT8, "*u8"),
}


def element_of(dtype: torch.dtype) -> torch.dtype:
    """What a kernel takes a tensor's elements for: it holds the float8 as bytes (see `triton/values/float8.py`), and
    Triton, told of their own types, would not store a byte there."""
    return torch.uint8 if dtype in FLOAT8 else dtype


#: The most registers that a thread may take, where nothing is spilled for it.
LIMIT = "maxnreg"
#: Else Triton writes an assertion for each sum and product of integers, which it drops again without `debug`.
_WITHOUT_ITS_OWN_CHECKS = {"sanitize_overflow": False}
#: Without it Triton drops assertions.
_WITH_CHECKS = {"debug": True}


def file_name(kernel: RenderedKernel) -> str:
    """The name under which the kernel's source is known to `linecache` and to debug information."""
    digest = hashlib.sha256(kernel.source.encode()).hexdigest()[:16]
    return f"{kernel.name}-{digest}.py"


def kernel_namespace(kernel: RenderedKernel) -> dict[str, Any]:
    """The executed module of the kernel; its function stands there under the kernel's name."""
    return _namespace(kernel.source, file_name(kernel), kernel.name)


def shared_function(kernel: RenderedKernel) -> Any:
    """The function of the kernel, or that of an equal one that was loaded before: layers of a model differ in the names
    of their tensors, and Triton would compile each of them."""
    code = code_of(kernel)
    if code not in _functions:
        _functions[code] = kernel_namespace(kernel)[kernel.name]
    return _functions[code]


#: Functions by what they are without names.
_functions: dict[str | bytes, Any] = {}


def forget_kernels() -> None:
    """Let the next load of each kernel compile it anew: functions keep what was compiled for them."""
    _namespace.cache_clear()
    _functions.clear()


@lru_cache(maxsize=512)
def _namespace(source: str, file: str, name: str) -> dict[str, Any]:
    return execute(source, file, name)


def launch_options(kernel: RenderedKernel) -> dict[str, Any]:
    """Triton's options for the kernel."""
    options = {name: kernel.config[name] for name in LAUNCH_OPTIONS if name in kernel.config}
    options |= _WITHOUT_ITS_OWN_CHECKS
    return options | _WITH_CHECKS if "checks" in kernel.config else options


def block_sizes(kernel: RenderedKernel) -> dict[str, int]:
    """The values of the kernel's `constexpr` parameters."""
    return {
        name: int(value) for name, value in kernel.config.items() if name.endswith("BLOCK") and isinstance(value, int)
    }


def described(kernel: RenderedKernel) -> dict[int, TileDescriptor]:
    """The kernel's arguments that are descriptors, by their positions."""
    return {kernel.parameters.index(one.parameter): one for one in kernel.descriptors}


def descriptor_of(base: Any, descriptor: TileDescriptor) -> Any:
    """What Triton takes for a descriptor: of a tensor, or of whatever has its dtype and address."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(base, list(descriptor.shape), list(descriptor.strides), list(descriptor.tile))


def grid_of(kernel: RenderedKernel) -> Callable[..., int]:
    """Programs of a launch as a function of the values of the kernel's sizes; 0 where there is nothing to do."""
    if isinstance(kernel.grid, int):
        count = kernel.grid
        return lambda *_: count
    names = ", ".join(atom.name for atom in kernel.sizes)
    function: Callable[..., int] = eval(f"lambda {names}: {spelt_out(kernel.grid, kernel.sizes)}", dict(FUNCTIONS))
    return function


def cluster_of(kernel: RenderedKernel) -> int:
    """How many programs of a launch are started together, as a cluster."""
    return int(str(kernel.config.get("cluster", 1)))


def workspace_of(kernel: RenderedKernel) -> tuple[int, int] | None:
    """Bytes of the workspace and number of counters that the launcher adds as last arguments, if the kernel wants
    them. Both must be zero before the first launch; each launch leaves them as the next one wants them."""
    size, counters = kernel.config.get("workspace_bytes"), kernel.config.get("counters")
    return None if size is None or counters is None else (int(str(size)), int(str(counters)))

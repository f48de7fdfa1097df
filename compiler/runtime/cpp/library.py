"""C++ kernels as Python functions: compiled once for all kernels of a graph, and called without a detour.

`launcher.cpp` calls a kernel straight from its tensors; where that cannot be had, ctypes does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from compiler.codegen.naming import identifier
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.same_code import first_of_each_code
from compiler.devices import usable_cores
from compiler.runtime.cpp.compiler import load_library
from compiler.runtime.host.launcher import CpuKernel, address_of, cpu_launch, launcher_library

#: Reading the headers costs as much as compiling so many kernels, so fewer are not worth a compiler of their own.
KERNELS_OF_ONE_UNIT = 8

Kernel = Callable[..., None]


def compile_kernels(kernels: Sequence[RenderedKernel]) -> dict[str, Kernel]:
    """Functions by kernel name; each takes tensors in the order of the kernel's parameters, then its sizes, and returns
    nothing. Kernels of one code, such as those of equal layers, share a function.

    The tensors must have the dtypes and the layout that the kernel was written for; nothing is checked here.
    """
    by_name = {kernel.name: kernel for kernel in kernels}
    first = first_of_each_code(by_name)
    batches = _batches([by_name[name] for name in dict.fromkeys(first.values())])
    with ThreadPoolExecutor(len(batches) + 1) as pool:
        launcher = pool.submit(launcher_library)  # compiled once for a machine
        libraries = pool.map(load_library, ["\n".join(kernel.source for kernel in batch) for batch in batches])
        launcher.result()
        bound = {
            kernel.name: _bind(library, kernel)
            for batch, library in zip(batches, libraries, strict=True)
            for kernel in batch
        }
        return {name: bound[first[name]] for name in by_name}


def _batches(kernels: list[RenderedKernel]) -> list[list[RenderedKernel]]:
    """One translation unit, or one for each processor where there are many kernels."""
    count = max(1, min(usable_cores(), len(kernels) // KERNELS_OF_ONE_UNIT))
    return [kernels[first::count] for first in range(count)] if kernels else []


def _bind(library: ctypes.CDLL, kernel: RenderedKernel) -> Kernel:
    function = getattr(library, identifier(kernel.name))
    set_threads = getattr(library, "omp_set_num_threads", None) if kernel.config.get("parallel") != "no" else None
    record = CpuKernel(function=address_of(function), tensors=len(kernel.parameters), sizes=len(kernel.sizes))
    if set_threads is not None:
        record.threads = torch.get_num_threads
        record.set_threads = address_of(set_threads)
    launch = cpu_launch(record) or _bind_by_ctypes(kernel, function, set_threads)
    return _checked(launch, library) if "checks" in kernel.config else launch


def _checked(launch: Kernel, library: ctypes.CDLL) -> Kernel:
    """The kernel, and then RuntimeError where one of its checks has failed."""
    failed_check = library.fusionscope_failed_check
    failed_check.argtypes, failed_check.restype = [], ctypes.c_char_p

    def run(*arguments: Any) -> None:
        launch(*arguments)
        message = failed_check()
        if message is not None:
            raise RuntimeError(message.decode())

    return run


def _bind_by_ctypes(kernel: RenderedKernel, function: Any, set_threads: Any) -> Kernel:
    count = len(kernel.parameters)
    function.argtypes = [ctypes.c_void_p] * count + [ctypes.c_int64] * len(kernel.sizes)
    function.restype = None

    def run(*arguments: Any) -> None:
        if set_threads is not None:
            set_threads(torch.get_num_threads())
        function(*[tensor.data_ptr() for tensor in arguments[:count]], *arguments[count:])

    run.__name__ = kernel.name
    return run

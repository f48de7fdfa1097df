"""Compiling Triton kernels for the GPU at hand, equal ones once.

Kernels that differ in names alone are one function (see `shared_function`), which is compiled when the first of them is
asked for; the others wait for it. Triton's passes, and the assembler, leave Python's interpreter to others while they
work, so that threads are enough for a few (see `preparing`); many are compiled by other processes (`compile_helpers`).

A kernel is loaded here and not by Triton, which up to 3.6 has a C compiler make a function that launches it, for every
list of argument types anew; that takes as long as all the rest, and `launcher.cpp` launches every one of ours.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.devices import WARP
from compiler.runtime.host.launcher import start_together
from compiler.runtime.triton.compile_helpers import let_helper_compile
from compiler.runtime.triton.library import library_options
from compiler.runtime.triton.source import (
    LIMIT,
    block_sizes,
    cluster_of,
    described,
    descriptor_of,
    element_of,
    launch_options,
    shared_function,
)

#: More compiled kernels than these are not remembered; the first to come are forgotten first.
MOST_REMEMBERED = 2048


@dataclass(frozen=True)
class TileInMemory:
    """How Triton wants a descriptor's tiles in shared memory: the type of the elements (CUtensorMapDataType), how many
    one copy takes along both dimensions, and how lines are swizzled (CUtensorMapSwizzle)."""

    element: int
    copied: tuple[int, int]
    swizzle: int


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel on a device, as Triton `compiled` it: its handle there (a CUfunction; None where only Triton can launch
    it), and what a program of it takes: registers and spilled words of each thread, threads, bytes of shared memory.
    `tiles` are those of the arguments that are descriptors, in their order."""

    compiled: Any
    function: int | None
    registers: int
    spills: int
    threads: int
    shared_bytes: int
    tiles: tuple[TileInMemory, ...] = ()


#: What Triton made, by all that decides it: the function, dtypes of the pointers, block sizes, options, device.
_known: dict[tuple[Any, ...], Future[LoadedKernel]] = {}
_lock = threading.Lock()


def compiled_kernel(kernel: RenderedKernel, pointers: Sequence[torch.dtype], device: int) -> LoadedKernel:
    """What Triton makes of the kernel for aligned pointers to such elements and sizes of 32 bits, loaded on `device`.

    Raises what Triton's compiler raises."""
    pointers = [element_of(dtype) for dtype in pointers]
    options = launch_options(kernel)
    blocks = block_sizes(kernel)
    function = shared_function(kernel)
    tiles = tuple((position, one.tile) for position, one in described(kernel).items())
    key = (function, tuple(pointers), tiles, tuple(blocks.items()), tuple(options.items()), device)
    with _lock:
        known = _known.get(key)
        made: Future[LoadedKernel] = known or _known.setdefault(key, Future())
        if len(_known) > MOST_REMEMBERED:
            del _known[next(iter(_known))]
    if known is not None:
        return known.result()
    try:
        with torch.cuda.device(device):
            settings = blocks | options | library_options(kernel.source, pointers)
            arguments = (*_without_memory(kernel, pointers), *(atom.hint for atom in kernel.sizes))
            compiled = _load(function, arguments, settings, device, cluster_of(kernel))
    except BaseException as error:
        with _lock:
            _known.pop(key, None)
        made.set_exception(error)
        raise
    made.set_result(compiled)
    return compiled


def _without_memory(kernel: RenderedKernel, pointers: Sequence[torch.dtype]) -> list[Any]:
    """What stands for the kernel's tensors where it is only compiled: their dtypes, and descriptors of nothing."""
    arguments: list[Any] = list(pointers)
    for position, descriptor in described(kernel).items():
        arguments[position] = descriptor_of(_Nothing(pointers[position]), descriptor)
    return arguments


@dataclass(frozen=True)
class _Nothing:
    """A tensor as Triton asks about it: a dtype, and an address that is divisible by whatever it likes."""

    dtype: torch.dtype

    @staticmethod
    def data_ptr() -> int:
        return 0


def compiled_for(kernel: RenderedKernel, arguments: Sequence[Any], device: int) -> LoadedKernel:
    """What Triton makes of the kernel for these very arguments, pointers that are not aligned among them."""
    settings = block_sizes(kernel) | launch_options(kernel)
    return _load(shared_function(kernel), arguments, settings, device, cluster_of(kernel))


def _load(function: Any, arguments: Sequence[Any], settings: dict[str, Any], device: int, cluster: int) -> LoadedKernel:
    """Compiled, or found on disk, and loaded. A limit of registers that makes the kernel spill is taken back, where the
    assembler was not ours, which does that itself (see `stages`)."""
    from compiler.runtime.triton.cache import through_cache

    def load(settings: dict[str, Any]) -> LoadedKernel:
        let_helper_compile(function, device)
        compiled = function.warmup(*arguments, grid=(1,), **settings)
        try:
            return _loaded(compiled, device, cluster)
        except Exception:
            getattr(function, "device_caches", {}).clear()  # where Triton would find the same again
            raise

    loaded = through_cache(lambda: load(settings), is_launched=True)
    if LIMIT not in settings or not loaded.spills:
        return loaded
    by_itself = {name: value for name, value in settings.items() if name != LIMIT}
    return through_cache(lambda: load(by_itself), is_launched=True)


def _loaded(compiled: Any, device: int, cluster: int) -> LoadedKernel:
    """The kernel on the device; one that is not plain, or asks for more than there is, in Triton's own way, which says
    what is wrong with it."""
    metadata = compiled.metadata
    threads, shared = WARP * int(metadata.num_warps), int(metadata.shared)
    if _is_plain(metadata):
        found = _load_binary(compiled, device)
        if found is not None and threads <= found[3]:
            function, registers, spills, _ = found
            if cluster > 1:
                start_together(function, cluster)
            tiles = tuple(map(_tile_in_memory, getattr(metadata, "tensordesc_meta", None) or ()))
            return LoadedKernel(compiled, function, registers, spills, threads, shared, tiles)
    compiled.run  # noqa: B018 - loads the binary, after which its figures are there
    return LoadedKernel(compiled, None, int(compiled.n_regs), int(compiled.n_spills), threads, shared)


def _load_binary(compiled: Any, device: int) -> tuple[int, int, int, int] | None:
    """The handle of the function, registers, spilled words, and the most threads that it can have; None where it wants
    more shared memory than a program may have."""
    from triton.runtime import driver

    active: Any = driver.active
    utils, shared = active.utils, compiled.metadata.shared
    if shared > utils.get_device_properties(device)["max_shared_mem"]:
        return None
    _, function, registers, spills, most_threads = utils.load_binary(compiled.name, compiled.kernel, shared, device)
    return int(function), int(registers), int(spills), int(most_threads)


def _is_plain(metadata: Any) -> bool:
    """Whether a kernel is launched with a grid, a block and its arguments, and nothing besides; descriptors are
    arguments where the device has a unit for them, and with each goes what Triton knows of its tiles."""
    special = (
        "launch_cooperative_grid",
        "launch_pdl",
        "global_scratch_size",
        "profile_scratch_size",
    )
    if None in (getattr(metadata, "tensordesc_meta", None) or ()):
        return False
    return not any(getattr(metadata, name, None) for name in special) and getattr(metadata, "num_ctas", 1) == 1


#: Triton's numbers of element types that are not the driver's: of float64, bfloat16 and float32.
_ELEMENTS = {8: 10, 9: 8, 10: 9}


def _tile_in_memory(told: Any) -> TileInMemory:
    rows, columns = told["block_size"]
    return TileInMemory(_ELEMENTS.get(told["elem_type"], told["elem_type"]), (rows, columns), told["swizzle"])

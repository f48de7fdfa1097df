"""Compiling Triton kernels for the GPU at hand: equal ones once, those of a graph at the same time.

Kernels that differ in names alone are one function (see `shared_function`), which is compiled when the first of them is
asked for; the others wait for it. Triton's passes, and the assembler, leave Python's interpreter to others while they
work, so that threads are enough.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime.triton_source import block_sizes, launch_options, shared_function

#: More compiled kernels than these are not remembered; the first to come are forgotten first.
MOST_REMEMBERED = 2048

#: What Triton made, by all that decides it: the function, dtypes of the pointers, block sizes, options, device.
_known: dict[tuple[Any, ...], Future[Any]] = {}
_lock = threading.Lock()


def compiled_kernel(kernel: RenderedKernel, pointers: Sequence[torch.dtype], device: int) -> Any:
    """What Triton makes of the kernel for aligned pointers to such elements and sizes of 32 bits, loaded on `device`.

    Raises what Triton's compiler raises."""
    options = launch_options(kernel)
    blocks = block_sizes(kernel)
    function = shared_function(kernel)
    key = (function, tuple(pointers), tuple(blocks.items()), tuple(options.items()), device)
    with _lock:
        known = _known.get(key)
        made: Future[Any] = known or _known.setdefault(key, Future())
        if len(_known) > MOST_REMEMBERED:
            del _known[next(iter(_known))]
    if known is not None:
        return known.result()
    try:
        with torch.cuda.device(device):
            compiled = _load(function, (*pointers, *(atom.hint for atom in kernel.sizes)), blocks | options)
    except BaseException as error:
        with _lock:
            _known.pop(key, None)
        made.set_exception(error)
        raise
    made.set_result(compiled)
    return compiled


def _load(function: Any, arguments: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Compiled, or found on disk, and loaded."""
    from compiler.runtime.triton_cache import through_cache

    def load() -> Any:
        compiled = function.warmup(*arguments, grid=(1,), **settings)
        try:
            compiled.run  # noqa: B018 - loads the binary, after which its function and figures are there
        except Exception:
            getattr(function, "device_caches", {}).clear()  # where Triton would find the same again
            raise
        return compiled

    return through_cache(load)


def prepare_all(prepares: Sequence[Callable[[], object]]) -> None:
    """Call each, all but the first at the same time: that one also sets up what Triton needs of the device.

    A kernel that does not compile says so when it is launched."""
    for prepare in prepares[:1]:
        _attempt(prepare)
    if len(prepares) > 1:
        with ThreadPoolExecutor(min(len(prepares) - 1, os.cpu_count() or 1)) as pool:
            list(pool.map(_attempt, prepares[1:]))


def _attempt(prepare: Callable[[], object]) -> None:
    with suppress(Exception):  # the launch does it again and raises
        prepare()

"""Compiling many Triton kernels at one time, each in a process that has the GPU but launches nothing.

What they leave in Triton's cache is found by the process that measures, whose own compilation is then a look-up.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager

import torch

from bench.contest import sentence_of
from compiler.codegen.rendered import RenderedKernel
from compiler.devices import usable_cores
from compiler.runtime.triton.launch import TritonLauncher


class Compilers:
    """Kernels under way. One that cannot be compiled is named by `failures`, with the sentence of the error."""

    def __init__(self, pool: ProcessPoolExecutor, device: torch.device, storage_sizes: int = 16) -> None:
        self._pool, self._device, self._elements = pool, device, storage_sizes
        self._under_way: dict[str, Future[str | None]] = {}

    def submit(self, kernel: RenderedKernel, dtypes: list[torch.dtype]) -> None:
        """Compile `kernel`, whose tensors have these dtypes, unless a kernel of the same text is under way."""
        if kernel.source not in self._under_way:
            self._under_way[kernel.source] = self._pool.submit(_compile, kernel, dtypes, str(self._device))

    def failures(self) -> dict[str, str]:
        """Waits for all of them; what went wrong, by the source of the kernel."""
        found = {source: future.result() for source, future in self._under_way.items()}
        return {source: sentence for source, sentence in found.items() if sentence is not None}


@contextmanager
def compilers(device: torch.device) -> Iterator[Compilers]:
    """Within, a process for each core but one compiles; they are gone afterwards, when measuring starts."""
    # A process that was forked from one that uses the GPU cannot use it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(usable_cores() - 1, 1), mp_context=context) as pool:
        yield Compilers(pool, device)


def _compile(kernel: RenderedKernel, dtypes: list[torch.dtype], device: str) -> str | None:
    """In a process of the pool: the sentence of the error, or None."""
    try:
        tensors = [torch.empty(16, dtype=dtype, device=device) for dtype in dtypes]
        TritonLauncher(kernel).prepare(*tensors, *(atom.hint for atom in kernel.sizes))
    except Exception as error:  # whatever stops the compiler is a result
        return sentence_of(error)
    return None

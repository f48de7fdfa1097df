"""The launchers of a graph's kernels, which are compiled as their texts come, equal ones once.

Where other processes compile, nobody waits for them before the first launch: what is left of the compilation, of
AOTAutograd and of Dynamo takes as long as most kernels do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.devices import WARP
from compiler.runtime.triton.launch import TritonLauncher, load_triton
from compiler.runtime.triton.preparing import Preparation
from compiler.runtime.triton.source import block_sizes

#: What a kernel takes to compile, in milliseconds of an H200's host: any one, for each character of its text, for that
#: and each element that a thread has, for each call of a library's function and such an element, for each element of
#: the tiles that a thread multiplies, and for each division for the place of one. Fitted to 198 kernels of nine models;
#: the median error is 21 %, and the slowest kernel of each model is among the three that are expected to be.
ANY, CHARACTER, CHARACTER_OF_ELEMENT, CALL, MULTIPLIED, DIVISION = 27.0, 0.014, 0.0015, 0.62, 1.7, 0.084


class GraphLaunchers:
    """Launchers of kernels for tensors of these `dtypes`, on a device, by the kernels' names."""

    def __init__(self, dtypes: Mapping[str, torch.dtype], device: int) -> None:
        self._by_name: dict[str, TritonLauncher] = {}
        self._dtypes, self._device = dtypes, device
        self._preparation = Preparation()
        self._forms: set[tuple[Any, ...]] = set()
        #: Of kernels that are equal to others, which are there once those are.
        self._equal: list[Callable[[], None]] = []

    def add(self, kernel: RenderedKernel) -> None:
        """Have the kernel compiled; now, where there are processes that do."""
        launcher = self._by_name[kernel.name] = load_triton(kernel)
        if kernel.grid == 0:
            return
        prepare = partial(launcher.prepare_for, [self._dtypes[name] for name in kernel.parameters], self._device)
        form = launcher.form
        if form in self._forms:
            self._equal.append(prepare)
        else:
            self._forms.add(form)
            self._preparation.add(prepare, work_of_compiling(kernel))

    def all(self, may_be_late: bool) -> dict[str, TritonLauncher]:
        """Launchers of all kernels by their names, once the last has been added. Where they `may_be_late`, what other
        processes are at is waited for by the first launch of one that is not there yet; else all are compiled when this
        returns, but for those that do not compile."""
        launchers, self._by_name = self._by_name, {}
        self._preparation.close()
        if not may_be_late or not self._preparation.is_begun:
            self._finish()
            return launchers
        for launcher in launchers.values():
            launcher.before_first = self._finish
        return launchers

    def _finish(self) -> None:
        self._preparation.finish()
        while self._equal:
            with suppress(Exception):  # the launch does it again and raises
                self._equal.pop()()

    def abandon(self) -> None:
        """None of them will be launched."""
        self._preparation.abandon()


def work_of_compiling(kernel: RenderedKernel) -> float:
    """Milliseconds that a kernel is expected to take to compile, beside others."""
    text, blocks = kernel.source, block_sizes(kernel)
    threads = WARP * int(str(kernel.config.get("num_warps", 4)))
    expected = ANY + CHARACTER * len(text)
    loop, is_product, _ = text.partition("\n    for ")[2].partition("tl.dot(")
    if is_product:
        m, n, k = (blocks.get(name, 1) for name in ("MBLOCK", "NBLOCK", "KBLOCK"))
        elements = m * n / threads
        expected += (m * n + m * k + k * n) / threads * (MULTIPLIED + DIVISION * (loop.count("//") + loop.count("%")))
    else:
        elements = max(1, _most_elements(blocks) / threads)
        expected += CHARACTER_OF_ELEMENT * len(text) * elements
    return expected + CALL * text.count("libdevice.") * elements


def _most_elements(blocks: Mapping[str, int]) -> int:
    """Of the one tile of a kernel, or of the largest of those that share a launch, whose block sizes have numbers."""
    tiles: dict[str, int] = {}
    for name, block in blocks.items():
        number = name.removesuffix("BLOCK").lstrip("RXY")
        tiles[number] = tiles.get(number, 1) * block
    return max(tiles.values(), default=1)

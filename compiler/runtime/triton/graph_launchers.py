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
from compiler.runtime.triton.launch import TritonLauncher
from compiler.runtime.triton.preparing import Preparation

#: How many times as long a product of tiles takes to compile as another kernel of as long a text: the slowest of nine
#: models' kernels are products.
PRODUCT = 4


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
        launcher = self._by_name[kernel.name] = TritonLauncher(kernel)
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


def work_of_compiling(kernel: RenderedKernel) -> int:
    """What a kernel is expected to take to compile, beside others."""
    return len(kernel.source) * (PRODUCT if "tl.dot(" in kernel.source else 1)

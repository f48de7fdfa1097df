"""Launching Triton kernels on the GPU at hand.

Triton's own dispatch looks at every argument on every call to find the right specialisation, which takes longer than
many kernels run. Our kernels take pointers, and sizes that they are not specialised for, so one question is left: are
all pointers divisible by 16, as memory from torch's allocator is? Where they are, the kernel that was compiled once is
launched straight; a view that starts elsewhere goes through Triton's dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compiler.codegen.program import RenderedKernel
from compiler.runtime.triton_source import LAUNCH_OPTIONS, block_sizes, grid_of, kernel_namespace, workspace_of

#: Pointers divisible by this many bytes may be loaded from in whole vectors.
ALIGNMENT = 16


def load_triton(kernel: RenderedKernel) -> TritonLauncher:
    """A function of the kernel's tensors, in the order of `kernel.parameters`, and then of its sizes, that launches it
    on the current stream.

    The kernel is compiled at the first call, or by `prepare`."""
    return TritonLauncher(kernel)


@dataclass(frozen=True)
class _Compiled:
    """A kernel compiled and loaded on one device, for aligned pointers."""

    run: Callable[..., None]
    function: Any
    metadata: Any
    registers: int
    spills: int
    shared_bytes: int


class TritonLauncher:
    """What `load_triton` returns. Tensors must be on one device, of the dtypes that the kernel was rendered for.

    `registers`, `spills` (32-bit words in local memory, for each thread) and `shared_bytes` are known once the kernel
    is compiled, None before."""

    def __init__(self, kernel: RenderedKernel) -> None:
        self.kernel = kernel
        self._function = kernel_namespace(kernel)[kernel.name]
        self._grid = grid_of(kernel)
        self._count = len(kernel.parameters)
        self._blocks = block_sizes(kernel)
        self._constants = tuple(self._blocks.values())
        self._options = {name: kernel.config[name] for name in LAUNCH_OPTIONS}
        self._wanted = workspace_of(kernel)
        self._workspaces: dict[tuple[int, int], list[torch.Tensor]] = {}
        self._compiled: dict[int, _Compiled] = {}
        self.registers: int | None = None
        self.spills: int | None = None
        self.shared_bytes: int | None = None

    def __call__(self, *arguments: Any) -> None:
        tensors, sizes = arguments[: self._count], arguments[self._count :]
        grid = self._grid(*sizes)
        if grid == 0:
            return
        device = tensors[0].get_device()
        stream = torch._C._cuda_getCurrentRawStream(device)
        if self._wanted is not None:
            tensors = (*tensors, *self._workspace(device, stream))
        pointers = [tensor.data_ptr() for tensor in tensors]
        together = 0
        for pointer in pointers:
            together |= pointer
        if together % ALIGNMENT or device != torch.cuda.current_device():
            self._dispatch(device, grid, (*tensors, *sizes))
            return
        compiled = self._compiled.get(device) or self._compile(device, (*tensors, *sizes))
        compiled.run(
            grid,
            1,
            1,
            stream,
            compiled.function,
            compiled.metadata,
            None,
            None,
            None,
            *pointers,
            *sizes,
            *self._constants,
        )

    def prepare(self, *arguments: Any) -> None:
        """Compile and load for the device of these tensors, without a launch."""
        tensors, sizes = arguments[: self._count], arguments[self._count :]
        device = tensors[0].get_device()
        if device not in self._compiled and self._grid(*sizes):
            if self._wanted is not None:
                tensors = (*tensors, *self._workspace(device, torch._C._cuda_getCurrentRawStream(device)))
            self._compile(device, (*tensors, *sizes))

    def _compile(self, device: int, arguments: tuple[Any, ...]) -> _Compiled:
        with torch.cuda.device(device):
            kernel = self._function.warmup(*arguments, grid=(1,), **self._blocks, **self._options)
            run = kernel.run  # loads the binary, after which the other attributes are there
            compiled = _Compiled(
                run,
                kernel.function,
                kernel.packed_metadata,
                int(kernel.n_regs),
                int(kernel.n_spills),
                int(kernel.metadata.shared),
            )
        self._compiled[device] = compiled
        self.registers, self.spills = compiled.registers, compiled.spills
        self.shared_bytes = compiled.shared_bytes
        return compiled

    def _dispatch(self, device: int, grid: int, arguments: tuple[Any, ...]) -> None:
        """Launch by Triton's own dispatch, which compiles for what the pointers are."""
        with torch.cuda.device(device):
            self._function[(grid,)](*arguments, **self._blocks, **self._options)

    def _workspace(self, device: int, stream: int) -> list[torch.Tensor]:
        """Memory for the parts of a split reduction; one for each stream, since two launches must not share it."""
        assert self._wanted is not None
        known = self._workspaces.get((device, stream))
        if known is None:
            size, counters = self._wanted
            known = self._workspaces[device, stream] = [
                torch.empty(max(size, ALIGNMENT), dtype=torch.uint8, device=f"cuda:{device}"),
                torch.zeros(max(counters, 1), dtype=torch.int32, device=f"cuda:{device}"),
            ]
        return known

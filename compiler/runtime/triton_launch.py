"""Launching Triton kernels on the GPU at hand.

Triton's own dispatch looks at every argument on every call to find the right specialisation, which takes longer than
many kernels run. Shapes are literals in our kernels and all arguments are pointers, so one question is left: are all of
them divisible by 16, as memory from torch's allocator is? Where they are, the kernel that was compiled once is launched
straight; a view that starts elsewhere goes through Triton's dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compiler.codegen.program import RenderedKernel
from compiler.runtime.triton_source import LAUNCH_OPTIONS, block_sizes, grid_size, kernel_namespace, workspace_of

#: Pointers divisible by this many bytes may be loaded from in whole vectors.
ALIGNMENT = 16


def load_triton(kernel: RenderedKernel) -> TritonLauncher:
    """A function of the kernel's tensors, in the order of `kernel.parameters`, that launches it on the current stream.

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
        self._grid = grid_size(kernel)
        self._blocks = block_sizes(kernel)
        self._constants = tuple(self._blocks.values())
        self._options = {name: kernel.config[name] for name in LAUNCH_OPTIONS}
        self._wanted = workspace_of(kernel)
        self._workspaces: dict[tuple[int, int], list[torch.Tensor]] = {}
        self._compiled: dict[int, _Compiled] = {}
        self.registers: int | None = None
        self.spills: int | None = None
        self.shared_bytes: int | None = None

    def __call__(self, *tensors: torch.Tensor) -> None:
        if self._grid == 0:
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
            self._dispatch(device, tensors)
            return
        compiled = self._compiled.get(device) or self._compile(device, tensors)
        compiled.run(
            self._grid,
            1,
            1,
            stream,
            compiled.function,
            compiled.metadata,
            None,
            None,
            None,
            *pointers,
            *self._constants,
        )

    def prepare(self, *tensors: torch.Tensor) -> None:
        """Compile and load for the device of these tensors, without a launch."""
        device = tensors[0].get_device()
        if self._grid and device not in self._compiled:
            if self._wanted is not None:
                tensors = (*tensors, *self._workspace(device, torch._C._cuda_getCurrentRawStream(device)))
            self._compile(device, tensors)

    def _compile(self, device: int, tensors: tuple[torch.Tensor, ...]) -> _Compiled:
        with torch.cuda.device(device):
            kernel = self._function.warmup(*tensors, grid=(self._grid,), **self._blocks, **self._options)
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

    def _dispatch(self, device: int, tensors: tuple[torch.Tensor, ...]) -> None:
        """Launch by Triton's own dispatch, which compiles for what the pointers are."""
        with torch.cuda.device(device):
            self._function[(self._grid,)](*tensors, **self._blocks, **self._options)

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

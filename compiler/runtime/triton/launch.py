"""Launching Triton kernels on the GPU at hand.

Triton's own dispatch looks at every argument on every call to find the right specialisation, which takes longer than
many kernels run. Our kernels take pointers, and sizes that they are not specialised for, so little is left to ask: are
all pointers divisible by 16, as memory from torch's allocator is, and do the sizes have 32 bits? Where they do, the
kernel that was compiled once is launched straight: by `launcher.cpp`, or, before that is ready for it, through ctypes.
What differs goes through Triton's dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel, TileDescriptor
from compiler.runtime.host.launcher import Descriptor, GpuKernel, Launch, gpu_launch, launch_by_driver
from compiler.runtime.triton.compile import LoadedKernel, TileInMemory, compiled_for, compiled_kernel
from compiler.runtime.triton.source import (
    block_sizes,
    cluster_of,
    described,
    descriptor_of,
    element_of,
    grid_of,
    launch_options,
    shared_function,
    workspace_of,
)

#: Pointers divisible by this many bytes may be loaded from in whole vectors.
ALIGNMENT = 16


class TritonLauncher:
    """A function of the kernel's tensors, in the order of `kernel.parameters`, and then of its sizes, that launches it
    on the current stream. Tensors must be on one device, of the dtypes that the kernel was rendered for. The kernel is
    compiled at the first call, or by `prepare` or `prepare_for`.

    `launch` does the same as a call, and is what a wrapper should hold. `registers`, `spills` (32-bit words in local
    memory, for each thread) and `shared_bytes` are known once the kernel is compiled, None before."""

    def __init__(self, kernel: RenderedKernel) -> None:
        self.kernel = kernel
        self._function = shared_function(kernel)
        self._grid = grid_of(kernel)
        self._count = len(kernel.parameters)
        self._blocks = block_sizes(kernel)
        self._options = launch_options(kernel)
        self._wanted = workspace_of(kernel)
        self._workspaces: dict[tuple[int, int], list[torch.Tensor]] = {}
        #: Kernels by device, compiled for aligned pointers.
        self._compiled: dict[int, LoadedKernel] = {}
        self._record = GpuKernel(
            tensors=self._count,
            sizes=len(kernel.sizes),
            grid=kernel.grid if isinstance(kernel.grid, int) else -1,
            has_workspace=self._wanted is not None,
            workspace_stream=-1,
            grid_of=self._grid,
            described=len(kernel.descriptors),
        )
        self._descriptors = described(kernel)
        self._launch: Launch | None = None
        #: What is waited for before a launch of what is not compiled yet.
        self.before_first: Callable[[], None] | None = None
        self.registers: int | None = None
        self.spills: int | None = None
        self.shared_bytes: int | None = None

    @property
    def form(self) -> tuple[Any, ...]:
        """What two kernels have in common where they are compiled to the same, given tensors of the same dtypes."""
        return (self._function, *self._blocks.items(), *self._options.items())

    @property
    def ptx(self) -> str | None:
        """What the assembler was given, once the kernel is compiled; None before, and where there is no such text."""
        made = next(iter(self._compiled.values()), None)
        return None if made is None else made.compiled.asm.get("ptx")

    @property
    def launch(self) -> Launch:
        """A builtin function that launches, once the kernel is compiled; this very object where there can be none."""
        self._record.otherwise = self._launch_slowly
        self._record.stream_of = torch._C._cuda_getCurrentRawStream
        return gpu_launch(self._record) or self._launch_slowly

    def __call__(self, *arguments: Any) -> None:
        if self._launch is None:
            self._launch = self.launch
        self._launch(*arguments)

    def _launch_slowly(self, *arguments: Any) -> None:
        """The first launch, and every one that is not like it."""
        if self.before_first is not None:
            self.before_first()
            self.before_first = None
            self(*arguments)  # which may be like every one now
            return
        tensors, sizes = arguments[: self._count], arguments[self._count :]
        grid = self._grid(*sizes)
        if grid == 0:
            return
        device = tensors[0].get_device()
        stream = torch._C._cuda_getCurrentRawStream(device)
        if self._wanted is not None:
            tensors = (*tensors, *self._workspace(device, stream))
        if device not in self._compiled and _is_ordinary(tensors, sizes):
            self._compile(device, [tensor.dtype for tensor in tensors])
        if not self._descriptors and _is_ordinary(tensors, sizes):
            kernel, values = self._compiled[device], [*(tensor.data_ptr() for tensor in tensors), *sizes]
            with torch.cuda.device(device):
                if launch_by_driver(kernel.function, grid, kernel.threads, kernel.shared_bytes, stream, values):
                    return
        self._dispatch(device, grid, (*tensors, *sizes))

    def prepare(self, *arguments: Any) -> None:
        """Compile and load for the device of these tensors, without a launch."""
        tensors, sizes = arguments[: self._count], arguments[self._count :]
        if self._grid(*sizes):
            self.prepare_for([tensor.dtype for tensor in tensors], tensors[0].get_device())

    def prepare_for(self, dtypes: Sequence[torch.dtype], device: int) -> None:
        """The same for tensors of these dtypes on that device."""
        workspace = (torch.uint8, torch.int32) if self._wanted is not None else ()
        if device not in self._compiled:
            self._compile(device, [*dtypes, *workspace])

    def prepare_stream(self, device: int, stream: int) -> None:
        """Make what a launch on that stream will want beside its arguments, as none can be made while launches are
        recorded."""
        if self._wanted is not None:
            self._workspace(device, stream)

    def _compile(self, device: int, pointers: Sequence[torch.dtype]) -> None:
        kernel = self._compiled[device] = compiled_kernel(self.kernel, pointers, device)
        self.registers, self.spills, self.shared_bytes = kernel.registers, kernel.spills, kernel.shared_bytes
        if not self._record.function and kernel.function is not None:
            self._record.on_device = self._record.device_number = device
            self._record.block, self._record.shared_bytes = kernel.threads, kernel.shared_bytes
            if self._descriptors:
                self._record.descriptors = _records(self._descriptors, kernel.tiles, pointers)
            self._record.function = kernel.function

    def _dispatch(self, device: int, grid: int, arguments: tuple[Any, ...]) -> None:
        """Launch by Triton's own dispatch, which compiles for what the pointers are."""
        arguments = tuple(_as_memory(a) if isinstance(a, torch.Tensor) else a for a in arguments)
        arguments = tuple(
            descriptor_of(_aligned(argument, self._descriptors[position]), self._descriptors[position])
            if position in self._descriptors
            else argument
            for position, argument in enumerate(arguments)
        )
        with torch.cuda.device(device):
            if cluster_of(self.kernel) > 1:
                self._launch_cluster(device, grid, arguments)
                return
            self._function[(grid,)](*arguments, **self._blocks, **self._options)

    def _launch_cluster(self, device: int, grid: int, arguments: tuple[Any, ...]) -> None:
        """The same for programs that are started together, which Triton does not do for a function of one program."""
        made = compiled_for(self.kernel, arguments, device)
        values = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        stream = torch._C._cuda_getCurrentRawStream(device)
        if not launch_by_driver(made.function, grid, made.threads, made.shared_bytes, stream, values):
            raise RuntimeError(f"{self.kernel.name} cannot be launched in clusters")

    def _workspace(self, device: int, stream: int) -> list[torch.Tensor]:
        """Memory for the parts of a split reduction, or of a team; one for each stream, since two launches must not
        share it. No word in it may look like one of the first launch."""
        assert self._wanted is not None
        known = self._workspaces.get((device, stream))
        if known is None:
            size, counters = self._wanted
            known = self._workspaces[device, stream] = [
                torch.zeros(max(size, ALIGNMENT), dtype=torch.uint8, device=f"cuda:{device}"),
                torch.zeros(max(counters, 1), dtype=torch.int32, device=f"cuda:{device}"),
            ]
        if not self._record.function or device == self._record.on_device:
            self._record.workspace, self._record.counters = (tensor.data_ptr() for tensor in known)
            self._record.workspace_stream = stream
        return known


def _records(
    descriptors: Mapping[int, TileDescriptor], tiles: Sequence[TileInMemory], pointers: Sequence[torch.dtype]
) -> Any:
    """The descriptors as launcher.cpp makes them, in the order of the arguments."""
    records = (Descriptor * len(descriptors))()
    for record, (position, one), tile in zip(records, sorted(descriptors.items()), tiles, strict=True):
        record.tensor, record.element_size = position, pointers[position].itemsize
        (record.lines, record.elements), record.stride = one.shape, one.strides[0]
        record.copied_lines, record.copied_elements = tile.copied
        record.element, record.swizzle = tile.element, tile.swizzle
        record.sizes, record.strides = one.shape, one.strides
    return records


def _aligned(tensor: torch.Tensor, descriptor: TileDescriptor) -> torch.Tensor:
    """The matrix, as it lies, where a descriptor can be made of it: at an address that is divisible by 16."""
    if tensor.data_ptr() % ALIGNMENT == 0:
        return tensor
    matrix = torch.as_strided(tensor, descriptor.shape, descriptor.strides)
    copy = torch.empty_strided(descriptor.shape, descriptor.strides, dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(matrix)


def _is_ordinary(tensors: Sequence[torch.Tensor], sizes: Sequence[int]) -> bool:
    """Whether a kernel compiled for these arguments does for nearly all others: pointers are aligned, sizes short."""
    return all(tensor.data_ptr() % ALIGNMENT == 0 for tensor in tensors) and all(-(2**31) <= n < 2**31 for n in sizes)


def _as_memory(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as Triton is to see it: what it is in memory, whatever sign eager reads it with."""
    dtype = element_of(tensor.dtype)
    return tensor if dtype == tensor.dtype else tensor.view(dtype)

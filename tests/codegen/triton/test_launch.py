"""The launcher's way from tensors to a launch, on a pretended driver: what is launched straight, and what is not."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from compiler.ir.size import Symbol, size
from compiler.runtime import launcher as runtime_launcher
from compiler.runtime import triton_launch
from compiler.runtime.triton_launch import load_triton
from tests.codegen.triton import groups

FUNCTION, STREAM, DEVICE = 0x1234, 7, 0

_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, _POINTERS, ctypes.c_void_p
)
_DEVICE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))


class Driver:
    """A pretended libcuda: keeps each launch as (grid, threads, shared bytes, stream, parameters)."""

    def __init__(self, parameters: int) -> None:
        self.launches: list[tuple[int, int, int, int, list[int]]] = []
        self.device = DEVICE
        self.result = 0

        def launch(function: int, x: int, y: int, z: int, bx: int, by: int, bz: int, shared: int, stream: int | None,
                   arguments: Any, extra: Any) -> int:  # fmt: skip
            assert (function, y, z, by, bz) == (FUNCTION, 1, 1, 1, 1)
            values = [ctypes.cast(arguments[n], ctypes.POINTER(ctypes.c_int64))[0] for n in range(parameters)]
            self.launches.append((x, bx, shared, stream or 0, values))
            return self.result

        def device(place: Any) -> int:
            place[0] = self.device
            return 0

        self.cuLaunchKernel, self.cuCtxGetDevice = _LAUNCH(launch), _DEVICE(device)


class Pretended:
    """A launcher whose compiler is pretended; Triton's launcher of a kernel (`by_triton`) and its dispatch, which
    compiles for the arguments, only take notes."""

    def __init__(self, kernel: RenderedKernel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel = kernel
        has_workspace = kernel.config.get("workspace_bytes") is not None
        self.driver = Driver(len(kernel.parameters) + 2 * has_workspace + len(kernel.sizes) + 2)
        self.dispatched: list[int] = []
        self.by_triton: list[int] = []
        monkeypatch.setattr(runtime_launcher, "cuda_driver", lambda: self.driver)
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM, raising=False)
        monkeypatch.setattr(torch.cuda, "device", lambda device: monkeypatch.context())
        monkeypatch.setattr(torch.Tensor, "get_device", lambda tensor: DEVICE)
        launcher = self.launcher = load_triton(kernel)
        self.workspace = [torch.zeros(16, dtype=torch.uint8), torch.zeros(1, dtype=torch.int32)]
        launcher._workspaces[DEVICE, STREAM] = self.workspace
        self.metadata = SimpleNamespace(shared=48, num_warps=4, num_ctas=1, launch_cooperative_grid=False)
        compiled = SimpleNamespace(
            run=lambda grid, *_: self.by_triton.append(grid),
            n_regs=32,
            n_spills=0,
            metadata=self.metadata,
            function=FUNCTION,
            packed_metadata=(),
        )
        monkeypatch.setattr(triton_launch, "compiled_kernel", lambda *_: compiled)
        monkeypatch.setattr(launcher, "_dispatch", lambda device, grid, arguments: self.dispatched.append(grid))

    def tensors(self, numel: int = 64 * 128) -> list[torch.Tensor]:
        return [torch.zeros(numel) for _ in self.kernel.parameters]


@pytest.fixture
def pointwise(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    case = groups.pointwise(torch.float32, 64, 128)
    return Pretended(render_triton(case.group, case.storage, H200), monkeypatch)


def test_after_the_first_launch_aligned_tensors_are_launched_straight(pointwise: Pretended) -> None:
    launch, tensors = pointwise.launcher.launch, pointwise.tensors()
    launch(*tensors)
    grid = pointwise.kernel.grid
    assert pointwise.by_triton == [grid] and not pointwise.driver.launches
    launch(*tensors)
    assert pointwise.by_triton == [grid]
    addresses = [tensor.data_ptr() for tensor in tensors]
    assert pointwise.driver.launches == [(grid, 128, 48, STREAM, [*addresses, 0, 0])]


def test_a_launcher_may_be_called_itself(pointwise: Pretended) -> None:
    for _ in range(3):
        pointwise.launcher(*pointwise.tensors())
    assert len(pointwise.driver.launches) == 2
    assert (pointwise.launcher.registers, pointwise.launcher.spills, pointwise.launcher.shared_bytes) == (32, 0, 48)


def test_a_view_that_starts_elsewhere_goes_through_tritons_dispatch(pointwise: Pretended) -> None:
    launch = pointwise.launcher.launch
    for _ in range(2):
        launch(torch.zeros(64 * 128 + 1)[1:], torch.zeros(128), torch.zeros(64 * 128))
    assert len(pointwise.dispatched) == 2 and not pointwise.driver.launches
    launch(*pointwise.tensors())  # the first that the kernel can be compiled for
    launch(*pointwise.tensors())
    assert len(pointwise.driver.launches) == 1
    launch(torch.zeros(64 * 128 + 1)[1:], torch.zeros(128), torch.zeros(64 * 128))
    assert len(pointwise.driver.launches) == 1


def test_another_current_device_is_left_to_triton(pointwise: Pretended) -> None:
    launch = pointwise.launcher.launch
    launch(*pointwise.tensors())
    pointwise.driver.device = 1
    launch(*pointwise.tensors())
    assert len(pointwise.by_triton) == 2 and not pointwise.driver.launches


def test_a_kernel_that_needs_more_than_its_arguments_is_left_to_triton(pointwise: Pretended) -> None:
    pointwise.metadata.launch_cooperative_grid = True
    launch = pointwise.launcher.launch
    for _ in range(2):
        launch(*pointwise.tensors())
    assert len(pointwise.by_triton) == 2 and not pointwise.driver.launches


def test_what_the_driver_refuses_is_an_error(pointwise: Pretended) -> None:
    launch = pointwise.launcher.launch
    launch(*pointwise.tensors())
    pointwise.driver.result = 719
    with pytest.raises(RuntimeError, match="719"):
        launch(*pointwise.tensors())


def test_without_a_driver_of_our_own_triton_launches(pointwise: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_launcher, "cuda_driver", lambda: None)
    launch = pointwise.launcher.launch
    for _ in range(2):
        launch(*pointwise.tensors())
    assert len(pointwise.by_triton) == 2


def test_nothing_is_launched_for_an_empty_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    case = groups.pointwise(torch.float32, 0, 3)
    empty = Pretended(render_triton(case.group, case.storage, H200), monkeypatch)
    empty.launcher.launch(torch.zeros(0), torch.zeros(3), torch.zeros(0))
    assert not empty.driver.launches
    assert not (empty.dispatched or empty.by_triton)


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    """A kernel with a size, as many programs as that says, and a workspace."""
    case = groups.pointwise(torch.float32, 64, 128)
    kernel = render_triton(case.group, case.storage, H200)
    n = Symbol("n", 8)
    config = kernel.config | {"workspace_bytes": 16, "counters": 1}
    return Pretended(replace(kernel, sizes=(n,), grid=size(n), config=config), monkeypatch)


def test_workspace_and_sizes_follow_the_tensors(sized: Pretended) -> None:
    launch, tensors = sized.launcher.launch, sized.tensors()
    launch(*tensors, 5)
    launch(*tensors, 9)
    addresses = [tensor.data_ptr() for tensor in (*tensors, *sized.workspace)]
    assert sized.by_triton == [5]
    assert sized.driver.launches == [(9, 128, 48, STREAM, [*addresses, 9, 0, 0])]
    launch(*tensors, 0)
    assert len(sized.driver.launches) == 1


def test_two_streams_share_no_workspace(sized: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    launch, tensors = sized.launcher.launch, sized.tensors()
    launch(*tensors, 5)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM + 1)
    other = [torch.zeros(16, dtype=torch.uint8), torch.zeros(1, dtype=torch.int32)]
    sized.launcher._workspaces[DEVICE, STREAM + 1] = other
    again = sized.launcher.launch  # which looks up anew what tells the stream
    for _ in range(2):
        again(*tensors, 5)
    ((_, _, _, stream, values),) = sized.driver.launches
    assert stream == STREAM + 1
    assert values[len(tensors) : len(tensors) + 2] == [tensor.data_ptr() for tensor in other]


def test_a_size_beyond_32_bits_is_left_to_triton_which_compiles_for_it(sized: Pretended) -> None:
    launch, tensors = sized.launcher.launch, sized.tensors()
    launch(*tensors, 5)
    launch(*tensors, 2**31)
    assert (sized.by_triton, sized.dispatched) == ([5], [2**31])
    assert not sized.driver.launches

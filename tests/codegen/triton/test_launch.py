"""The launcher's way from tensors to a launch, on a pretended driver: what is launched straight, and what is not."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest
import torch
from triton._utils import canonicalize_dtype

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from compiler.ir.size import Symbol, size
from compiler.runtime.host import launcher as runtime_launcher
from compiler.runtime.triton import launch as triton_launch
from compiler.runtime.triton.compile import LoadedKernel
from compiler.runtime.triton.launch import TritonLauncher
from compiler.runtime.triton.source import POINTERS, element_of
from tests.codegen.triton import groups

FUNCTION, STREAM, DEVICE = 0x1234, 7, 0

_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, _POINTERS, ctypes.c_void_p
)
_DEVICE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))


class Driver:
    """A pretended libcuda: keeps each launch as (grid, threads, shared bytes, stream, parameters), unless it is to
    answer with an error."""

    def __init__(self, parameters: int) -> None:
        self.launches: list[tuple[int, int, int, int, list[int]]] = []
        self.device = DEVICE
        self.result = 0

        def launch(function: int, x: int, y: int, z: int, bx: int, by: int, bz: int, shared: int, stream: int | None,
                   arguments: Any, extra: Any) -> int:  # fmt: skip
            assert (function, y, z, by, bz) == (FUNCTION, 1, 1, 1, 1)
            values = [ctypes.cast(arguments[n], ctypes.POINTER(ctypes.c_int64))[0] for n in range(parameters)]
            if not self.result:
                self.launches.append((x, bx, shared, stream or 0, values))
            return self.result

        def device(place: Any) -> int:
            place[0] = self.device
            return 0

        self.cuLaunchKernel, self.cuCtxGetDevice = _LAUNCH(launch), _DEVICE(device)


class Pretended:
    """A launcher whose compiler is pretended; Triton's dispatch, which compiles for the arguments, only takes notes.
    `loaded` is the kernel."""

    def __init__(self, kernel: RenderedKernel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel = kernel
        has_workspace = kernel.config.get("workspace_bytes") is not None
        self.driver = Driver(len(kernel.parameters) + 2 * has_workspace + len(kernel.sizes) + 2)
        self.dispatched: list[int] = []
        monkeypatch.setattr(runtime_launcher, "cuda_driver", lambda: self.driver)
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM, raising=False)
        monkeypatch.setattr(torch.cuda, "device", lambda device: monkeypatch.context())
        monkeypatch.setattr(torch.Tensor, "get_device", lambda tensor: DEVICE)
        launcher = self.launcher = TritonLauncher(kernel)
        self.workspace = [torch.zeros(16, dtype=torch.uint8), torch.zeros(1, dtype=torch.int32)]
        launcher._workspaces[DEVICE, STREAM] = self.workspace
        self.loaded = LoadedKernel(None, FUNCTION, registers=32, spills=0, threads=128, shared_bytes=48)
        monkeypatch.setattr(triton_launch, "compiled_kernel", lambda *_: self.loaded)
        monkeypatch.setattr(launcher, "_dispatch", lambda device, grid, arguments: self.dispatched.append(grid))

    def tensors(self, numel: int = 64 * 128) -> list[torch.Tensor]:
        return [torch.zeros(numel) for _ in self.kernel.parameters]


@pytest.fixture
def pointwise(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    case = groups.pointwise(torch.float32, 64, 128)
    return Pretended(render_triton(case.group, case.storage, H200), monkeypatch)


def test_aligned_tensors_are_launched_straight_the_first_time_and_later(pointwise: Pretended) -> None:
    launch, tensors = pointwise.launcher.launch, pointwise.tensors()
    addresses = [tensor.data_ptr() for tensor in tensors]
    straight = (pointwise.kernel.grid, 128, 48, STREAM, [*addresses, 0, 0])
    for count in (1, 2):
        launch(*tensors)
        assert pointwise.driver.launches == [straight] * count and not pointwise.dispatched


def test_a_kernel_that_is_being_compiled_is_waited_for_once(pointwise: Pretended) -> None:
    launcher, waited = pointwise.launcher, []

    def wait() -> None:
        assert not pointwise.driver.launches
        waited.append(1)
        launcher.prepare(*pointwise.tensors())

    launcher.before_first = wait
    launch = launcher.launch
    for count in (1, 2):
        launch(*pointwise.tensors())
        assert len(pointwise.driver.launches) == count and waited == [1]


def test_one_that_is_there_is_launched_while_others_are_being_compiled(pointwise: Pretended) -> None:
    launcher, waited = pointwise.launcher, []
    launcher.before_first = lambda: waited.append(1)
    launch = launcher.launch
    launcher.prepare(*pointwise.tensors())
    launch(*pointwise.tensors())
    assert len(pointwise.driver.launches) == 1 and not waited


def test_one_that_did_not_compile_says_so_when_it_is_launched(
    pointwise: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no such instruction")

    monkeypatch.setattr(triton_launch, "compiled_kernel", fail)
    pointwise.launcher.before_first = lambda: None
    for _ in range(2):
        with pytest.raises(ValueError, match="no such instruction"):
            pointwise.launcher.launch(*pointwise.tensors())


def test_a_launcher_may_be_called_itself(pointwise: Pretended) -> None:
    for _ in range(3):
        pointwise.launcher(*pointwise.tensors())
    assert len(pointwise.driver.launches) == 3
    assert (pointwise.launcher.registers, pointwise.launcher.spills, pointwise.launcher.shared_bytes) == (32, 0, 48)


def test_a_view_that_starts_elsewhere_goes_through_tritons_dispatch(pointwise: Pretended) -> None:
    launch = pointwise.launcher.launch
    for _ in range(2):
        launch(torch.zeros(64 * 128 + 1)[1:], torch.zeros(128), torch.zeros(64 * 128))
    assert len(pointwise.dispatched) == 2 and not pointwise.driver.launches
    launch(*pointwise.tensors())  # the first that the kernel can be compiled for
    assert len(pointwise.driver.launches) == 1
    launch(torch.zeros(64 * 128 + 1)[1:], torch.zeros(128), torch.zeros(64 * 128))
    assert len(pointwise.driver.launches) == 1 and len(pointwise.dispatched) == 3


def test_on_another_current_device_it_is_launched_where_its_tensors_are(
    pointwise: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = pointwise.launcher.launch
    current: list[int] = []

    def device(chosen: int) -> AbstractContextManager[pytest.MonkeyPatch]:
        current.append(chosen)
        return monkeypatch.context()

    launch(*pointwise.tensors())
    monkeypatch.setattr(torch.cuda, "device", device)
    pointwise.driver.device = 1
    launch(*pointwise.tensors())
    assert current == [DEVICE] and len(pointwise.driver.launches) == 2


def test_a_kernel_that_only_triton_can_launch_is_left_to_it(pointwise: Pretended) -> None:
    pointwise.loaded = replace(pointwise.loaded, function=None)
    launch = pointwise.launcher.launch
    for _ in range(2):
        launch(*pointwise.tensors())
    assert len(pointwise.dispatched) == 2 and not pointwise.driver.launches


def test_a_first_launch_that_the_driver_refuses_is_left_to_triton(pointwise: Pretended) -> None:
    """As in a thread that has no context yet."""
    pointwise.driver.result = 201
    pointwise.launcher.launch(*pointwise.tensors())
    assert len(pointwise.dispatched) == 1


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
    assert len(pointwise.dispatched) == 2 and not pointwise.driver.launches


def test_nothing_is_launched_for_an_empty_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    case = groups.pointwise(torch.float32, 0, 3)
    empty = Pretended(render_triton(case.group, case.storage, H200), monkeypatch)
    empty.launcher.launch(torch.zeros(0), torch.zeros(3), torch.zeros(0))
    assert not empty.driver.launches
    assert not empty.dispatched


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
    expected = [(grid, 128, 48, STREAM, [*addresses, grid, 0, 0]) for grid in (5, 9)]
    assert sized.driver.launches == expected
    launch(*tensors, 0)
    assert sized.driver.launches == expected and not sized.dispatched


def test_two_streams_share_no_workspace(sized: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    launch, tensors = sized.launcher.launch, sized.tensors()
    launch(*tensors, 5)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM + 1)
    other = [torch.zeros(16, dtype=torch.uint8), torch.zeros(1, dtype=torch.int32)]
    sized.launcher._workspaces[DEVICE, STREAM + 1] = other
    again = sized.launcher.launch  # which looks up anew what tells the stream
    for _ in range(2):
        again(*tensors, 5)
    for _, _, _, stream, values in sized.driver.launches[1:]:
        assert stream == STREAM + 1
        assert values[len(tensors) : len(tensors) + 2] == [tensor.data_ptr() for tensor in other]
    assert len(sized.driver.launches) == 3


def test_a_size_beyond_32_bits_is_left_to_triton_which_compiles_for_it(sized: Pretended) -> None:
    launch, tensors = sized.launcher.launch, sized.tensors()
    launch(*tensors, 5)
    launch(*tensors, 2**31)
    assert [grid for grid, *_ in sized.driver.launches] == [5]
    assert sized.dispatched == [2**31]


@pytest.mark.parametrize("dtype", [dtype for dtype in POINTERS if dtype != torch.bool], ids=str)
def test_triton_is_told_of_the_elements_that_kernels_are_printed_for(dtype: torch.dtype) -> None:
    """A float8 is a byte in a kernel: Triton would not store one where it knows of a float8."""
    assert f"*{canonicalize_dtype(element_of(dtype))}" == POINTERS[dtype]

"""Tiles that descriptors bring: what they may be made of, what the kernels compute, and how they are launched."""

from __future__ import annotations

import ctypes
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.product import render_tiles
from compiler.devices import A100, H200
from compiler.ir.index import Dim, Index
from compiler.runtime.host import launcher as runtime_launcher
from compiler.runtime.interpreter.interpreter import interpret
from compiler.runtime.triton import launch as triton_launch
from compiler.runtime.triton.compile import LoadedKernel, TileInMemory
from compiler.runtime.triton.launch import TritonLauncher
from compiler.runtime.triton.offline import compile_offline
from compiler.schedule.products import best_tile
from compiler.schedule.products.descriptors import line_stride, may_be_described
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import Tile
from tests.codegen.triton.test_launch import DEVICE, FUNCTION, STREAM, Driver
from tests.schedule.test_shared_operand import products, scheduled

Tensor = torch.Tensor
SMALL = Tile(16, 16, 16, 4, 2, by_descriptors=True)
LARGE = Tile(128, 128, 64, 8, 4, by_descriptors=True)
ROWS, INNER = Dim("m", 64), Dim("k", 48)


def gate(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    sums = x @ w
    return sums * torch.sigmoid(sums) * (x @ v)


def turned_gate(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    sums = F.linear(x, w)
    return sums * torch.sigmoid(sums) * F.linear(x, v)


def joined(function: Any, *shapes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> Product:
    """The two products as one kernel, whatever the model thinks of such sizes."""
    monkeypatch.setattr(best_tile, "DESCRIBED_SHARE", 100.0)
    (product,) = products(scheduled(function, *shapes, dtype=torch.bfloat16))
    return product


def storage_of(product: Product) -> dict[str, torch.dtype]:
    accesses = (access for member in product.members for access in (*member.body.reads, *member.body.writes))
    return {access.buffer: torch.bfloat16 for access in accesses}


@pytest.mark.parametrize(
    ("index", "stride"),
    [
        (Index.of(ROWS) * 48 + Index.of(INNER), 48),
        (Index.of(ROWS) * 64 + Index.of(INNER), 64),
        (Index.of(ROWS) * 52 + Index.of(INNER), None),  # 104 bytes
        (Index.of(ROWS) * 96 + Index.of(INNER) * 2, None),
        (Index.of(ROWS) * 48 + Index.of(INNER) + 8, None),
        (Index.of(INNER), None),
        (Index.of(ROWS) // 2 * 48 + Index.of(INNER), None),
    ],
)
def test_lines_without_gaps_that_begin_at_sixteen_bytes_can_be_described(index: Index, stride: int | None) -> None:
    assert line_stride(index, ROWS, INNER, 2) == stride


def squared_gate(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return (x @ w).relu() * (x @ v) * x


def test_only_a_gpu_with_the_unit_for_it_takes_descriptors_and_only_of_what_nothing_else_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    product = joined(gate, (64, 64), (64, 64), (64, 64), monkeypatch=monkeypatch)
    assert may_be_described(product, H200) and not may_be_described(product, A100)
    again = joined(squared_gate, (64, 64), (64, 64), (64, 64), monkeypatch=monkeypatch)
    assert not may_be_described(again, H200)


@pytest.mark.parametrize(
    ("function", "weight"), [(gate, (88, 72)), (turned_gate, (72, 88))], ids=["lines along n", "lines along k"]
)
def test_tiles_beyond_the_end_are_zeros_and_the_result_is_right(
    function: Any, weight: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    product = joined(function, (40, 88), weight, weight, monkeypatch=monkeypatch)
    kernel = render_tiles(product, storage_of(product), SMALL, 0)
    torch.manual_seed(0)
    inputs = {
        name: torch.randn(shape).bfloat16() for name, shape in (("x_1", (40, 88)), ("w_1", weight), ("v_1", weight))
    }
    result = torch.empty(40, 72, dtype=torch.bfloat16)
    interpret(kernel, [inputs.get(name, result) for name in kernel.parameters])
    expected = function(*(tensor.double() for tensor in inputs.values()))
    assert (result.double() - expected).abs().max() <= 2**-8 * expected.abs().max()


@pytest.mark.parametrize(("function", "weight"), [(gate, (512, 1024)), (turned_gate, (1024, 512))])
def test_the_kernel_is_assembled_with_copies_of_whole_tiles(
    function: Any, weight: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    product = joined(function, (512, 512), weight, weight, monkeypatch=monkeypatch)
    storage = storage_of(product)
    made = compile_offline(render_tiles(product, storage, LARGE, 0), storage)
    assert made.error is None and made.spills == 0
    assert "cp.async.bulk.tensor" in made.ptx and "wgmma" in made.ptx


_ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32), ctypes.c_int,
    ctypes.c_int, ctypes.c_int, ctypes.c_int,
)  # fmt: skip


class DescribingDriver(Driver):
    """It writes the address of the matrix as the map."""

    def __init__(self, parameters: int) -> None:
        super().__init__(parameters)
        self.encoded: list[tuple[Any, ...]] = []

        def encode(place: int, element: int, rank: int, address: int, sizes: Any, strides: Any, copied: Any, each: Any,
                   interleave: int, swizzle: int, promotion: int, fill: int) -> int:  # fmt: skip
            assert (rank, each[0], each[1], interleave, fill, place % 64) == (2, 1, 1, 0, 0, 0)
            ctypes.cast(place, ctypes.POINTER(ctypes.c_int64))[0] = address
            self.encoded.append((address, element, sizes[:2], strides[0], copied[:2], swizzle))
            return self.result

        self.cuTensorMapEncodeTiled = _ENCODE(encode)


def pretended(
    kernel: RenderedKernel, monkeypatch: pytest.MonkeyPatch, is_late: bool = False
) -> tuple[Any, DescribingDriver, list[int]]:
    # Behind each of three descriptors come two sizes and two strides; two addresses are Triton's own.
    driver = DescribingDriver(len(kernel.parameters) + 3 * 4 + 2)
    dispatched: list[int] = []
    monkeypatch.setattr(runtime_launcher, "cuda_driver", lambda: driver)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM, raising=False)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda tensor: DEVICE)
    tiles = (TileInMemory(9, (16, 16), 1),) * 3
    loaded = LoadedKernel(SimpleNamespace(), FUNCTION, 100, 0, threads=128, shared_bytes=48, tiles=tiles)
    monkeypatch.setattr(triton_launch, "compiled_kernel", lambda *_: loaded)
    launcher = TritonLauncher(kernel)
    monkeypatch.setattr(launcher, "_dispatch", lambda device, grid, arguments: dispatched.append(grid))
    prepare = partial(launcher.prepare_for, [torch.bfloat16] * len(kernel.parameters), DEVICE)
    if is_late:
        launcher.before_first = prepare
    else:
        prepare()
    return launcher.launch, driver, dispatched


@pytest.mark.parametrize("is_late", [False, True], ids=["compiled before", "waited for by the first launch"])
def test_a_map_is_made_for_each_address_once_and_passed_in_its_place(
    is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = joined(turned_gate, (40, 88), (72, 88), (72, 88), monkeypatch=monkeypatch)
    kernel = render_tiles(product, storage_of(product), SMALL, 0)
    launch, driver, dispatched = pretended(kernel, monkeypatch, is_late)
    tensors = [torch.zeros(72, 88, dtype=torch.bfloat16) for _ in kernel.parameters]
    x, w, v, y = (tensor.data_ptr() for tensor in tensors)
    for _ in range(2):
        launch(*tensors)
    assert driver.encoded == [
        (x, 9, [88, 40], 176, [16, 16], 1), (w, 9, [88, 72], 176, [16, 16], 1), (v, 9, [88, 72], 176, [16, 16], 1)
    ]  # fmt: skip
    grid, _, _, _, values = driver.launches[1]
    assert grid == kernel.grid == 15
    # Of the sizes, 32 bits count.
    assert [values[0], values[5], values[10], values[15]] == [x, w, v, y]
    assert [value % 2**32 for value in values[1:3]] == [40, 88] and values[3:5] == [88, 1]
    moved = torch.zeros_like(tensors[0])
    launch(moved, *tensors[1:])
    assert [one[0] for one in driver.encoded[3:]] == [moved.data_ptr()] and not dispatched


def test_a_matrix_that_starts_elsewhere_goes_through_tritons_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    product = joined(turned_gate, (40, 88), (72, 88), (72, 88), monkeypatch=monkeypatch)
    kernel = render_tiles(product, storage_of(product), SMALL, 0)
    launch, driver, dispatched = pretended(kernel, monkeypatch)
    tensors = [torch.zeros(73 * 88, dtype=torch.bfloat16) for _ in kernel.parameters]
    launch(tensors[0][1:], *tensors[1:])
    assert dispatched == [15] and not driver.launches


def test_what_the_driver_says_of_a_map_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    product = joined(turned_gate, (40, 88), (72, 88), (72, 88), monkeypatch=monkeypatch)
    kernel = render_tiles(product, storage_of(product), SMALL, 0)
    launch, driver, _ = pretended(kernel, monkeypatch)
    driver.result = 1
    with pytest.raises(RuntimeError, match="cuTensorMapEncodeTiled failed with CUDA's error 1"):
        launch(*(torch.zeros(72, 88, dtype=torch.bfloat16) for _ in kernel.parameters))


@pytest.mark.gpu
@pytest.mark.parametrize("start", [0, 1], ids=["aligned", "not aligned"])
@pytest.mark.parametrize(
    ("function", "weight"), [(gate, (200, 136)), (turned_gate, (136, 200))], ids=["lines along n", "lines along k"]
)
def test_on_a_gpu_the_result_is_right_wherever_the_matrices_are(
    function: Any, weight: tuple[int, int], start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = joined(function, (300, 200), weight, weight, monkeypatch=monkeypatch)
    kernel = render_tiles(product, storage_of(product), LARGE, 0)
    launcher = TritonLauncher(kernel)

    def matrix(*shape: int) -> Tensor:
        flat = torch.randn(start + shape[0] * shape[1], device="cuda").bfloat16()
        return flat[start:].view(shape)

    for seed in range(3):
        torch.manual_seed(seed)
        inputs = {"x_1": matrix(300, 200), "w_1": matrix(*weight), "v_1": matrix(*weight)}
        result = torch.empty(300, 136, dtype=torch.bfloat16, device="cuda")
        launcher(*(inputs.get(name, result) for name in kernel.parameters))
        expected = function(*(tensor.double() for tensor in inputs.values()))
        assert (result.double() - expected).abs().max() <= 2**-8 * expected.abs().max()

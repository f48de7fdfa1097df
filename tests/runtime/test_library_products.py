"""The library's products are launched with what torch would launch them with, or left to torch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import compiler.runtime.host.library_products as library_products
from compiler.codegen.library_products import LibraryProduct, library_product
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, TensorArgument
from compiler.runtime.host import cublas
from compiler.runtime.host.library_products import ByTorch, product_launch
from compiler.schedule.products.library_epilogues import ADDMM_GELU

aten = torch.ops.aten
GPU = torch.device("cuda", 0)
BF16 = torch.bfloat16
DTYPES = {number: dtype for dtype, number in cublas.TYPES.items()}


class Library:
    """cuBLASLt on a CPU: what is made has a number, by which its attributes are kept. `refuses` is what multiplying
    gives instead of doing it."""

    def __init__(self) -> None:
        self.made: dict[int, dict[Any, Any]] = {}
        self.numbers, self.calls, self.searches, self.refuses, self.workspace_bytes = 0, 0, 0, 0, 0
        self.functions = [
            self.function(name, kinds)
            for name, kinds in {
                "cublasLtCreate": "p", "cublasLtMatmulDescCreate": "pii", "cublasLtMatmulDescDestroy": "p",
                "cublasLtMatmulDescSetAttribute": "pips", "cublasLtMatrixLayoutCreate": "pissl",
                "cublasLtMatrixLayoutSetAttribute": "pips", "cublasLtMatmulPreferenceCreate": "p",
                "cublasLtMatmulPreferenceDestroy": "p", "cublasLtMatmulPreferenceSetAttribute": "pips",
                "cublasLtMatmulAlgoGetHeuristic": "pppppppipp", "cublasLtMatmul": "ppppppppppppppsp",
            }.items()
        ]  # fmt: skip

    def function(self, name: str, kinds: str) -> Any:
        types = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_int64, "s": ctypes.c_size_t}
        bodies: dict[str, Any] = {
            "SetAttribute": self.set, "Create": self.create, "Destroy": self.destroy, "Heuristic": self.search,
            "Matmul": self.multiply,
        }  # fmt: skip
        body = next(bodies[end] for end in bodies if name.endswith(end))
        function = ctypes.CFUNCTYPE(ctypes.c_int, *(types[kind] for kind in kinds))(body)
        setattr(self, name, function)
        return function

    def create(self, where: int, *values: int) -> int:
        self.numbers += 1
        ctypes.c_void_p.from_address(where).value = self.numbers
        self.made[self.numbers] = {"values": values}
        return 0

    def destroy(self, made: int) -> int:
        del self.made[made]
        return 0

    def set(self, made: int, attribute: int, value: int, size: int) -> int:
        self.made[made][attribute] = int.from_bytes(ctypes.string_at(value, size), "little")
        return 0

    def search(self, handle: int, description: int, *rest: int) -> int:
        self.searches += 1
        found, count = rest[-2:]
        result = cublas.HeuristicResult.from_address(found)
        result.workspace_bytes, result.algorithm[0] = self.workspace_bytes, 42
        ctypes.c_int.from_address(count).value = 1
        return 0

    def multiply(self, handle: int, description: int, *rest: int) -> int:
        _, a, layout_a, b, layout_b, _, _, _, d, layout_d, algorithm, workspace, workspace_bytes, _ = rest
        assert ctypes.c_uint64.from_address(algorithm).value == 42
        assert workspace_bytes == self.workspace_bytes and bool(workspace) == bool(workspace_bytes)
        if self.refuses:
            return self.refuses
        self.calls += 1
        how = self.made[description]
        left, right = (
            self.matrices(at, layout, bool(how[transposed]))
            for at, layout, transposed in ((a, layout_a, 3), (b, layout_b, 4))
        )
        result = self.matrices(d, layout_d, False)
        product = left.double() @ right.double()
        if how[7] != cublas.NO_EPILOGUE:
            bias = (ctypes.c_uint8 * (result.shape[1] * result.itemsize)).from_address(how[8])
            product = product + torch.frombuffer(bias, dtype=result.dtype).double()[:, None]
        result.copy_(torch.relu(product) if how[7] == cublas.EPILOGUES["relu"] else product)
        return 0

    def matrices(self, address: int, layout: int, is_transposed: bool) -> Tensor:
        """What the library sees there, a batch: rows side by side, columns a step apart."""
        kept = self.made[layout]
        number, rows, columns, step = kept["values"]
        dtype, batches, batch_step = DTYPES[number], kept.get(5, 1), kept.get(6, 0)
        count = (batches - 1) * batch_step + (columns - 1) * step + rows
        memory = torch.frombuffer((ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address), dtype=dtype)
        seen = memory.as_strided((batches, rows, columns), (batch_step, 1, step))
        return seen.mT if is_transposed else seen


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    library = Library()
    monkeypatch.setattr(cublas, "loaded", lambda: library)
    monkeypatch.setattr(cublas, "handle", lambda device: 77)
    monkeypatch.setattr(cublas, "workspace_of_cublas", lambda device: 1 << 20)
    monkeypatch.setattr(library_products, "_workspace", lambda device, stream: torch.empty(64))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 5, raising=False)
    yield library


def argument(tensor: Tensor, name: str, graph: LoopGraph) -> TensorArgument:
    """A view of a buffer that begins where its storage does."""
    storage = Layout.contiguous((tensor.untyped_storage().nbytes() // tensor.itemsize,), tensor.dtype)
    graph.buffers[name] = storage
    return TensorArgument(
        name, Layout(tuple(tensor.shape), tensor.stride(), tensor.dtype, int(tensor.storage_offset()))
    )


def product_of(target: Any, *tensors: Tensor, **keywords: Any) -> LibraryProduct | None:
    graph = LoopGraph()
    arguments = tuple(argument(tensor, f"t{n}", graph) for n, tensor in enumerate(tensors))
    result = Layout.contiguous((*tensors[-2].shape[:-1], tensors[-1].shape[-1]), tensors[-1].dtype)
    return library_product(ExternNode("mm", target, arguments, keywords, (("mm", result),)), graph)


def whole(tensor: Tensor) -> Tensor:
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())


def run(product: LibraryProduct | None, *tensors: Tensor) -> Tensor:
    assert product is not None
    result = torch.full(product.result.layout.shape, torch.nan, dtype=tensors[0].dtype)  # type: ignore[arg-type]
    product_launch(product, GPU)(*map(whole, tensors), result)
    return result


def matrices(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(5, 7).to(dtype), torch.randn(7, 3).to(dtype)


#: How a matrix, or each of a batch, may lie.
LIES = {
    "in rows": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "in rows with gaps": lambda x: torch.cat((x, x), -1)[..., : x.shape[-1]],
    "transposed, from the middle": lambda x: torch.cat((x, x), -1).mT.contiguous()[..., x.shape[-1] :, :].mT,
}


@pytest.mark.parametrize("right_lies", LIES)
@pytest.mark.parametrize("left_lies", LIES)
@pytest.mark.parametrize("target", [aten.mm.default, aten.addmm.default, aten._addmm_activation.default])
def test_the_library_is_told_how_the_matrices_lie(
    library: Library, target: Any, left_lies: str, right_lies: str
) -> None:
    for dtype in cublas.TYPES:
        left, right = matrices(dtype)
        given = [LIES[left_lies](left), LIES[right_lies](right)]
        if target is not aten.mm.default:
            given.insert(0, torch.randn(6).to(dtype)[3:])
        expected = target(*(x.double() for x in given)).to(dtype)
        torch.testing.assert_close(run(product_of(target, *given), *given), expected)
    assert library.calls == len(cublas.TYPES)


@pytest.mark.parametrize("right_lies", LIES)
@pytest.mark.parametrize("left_lies", LIES)
def test_the_library_is_told_how_a_batch_lies(library: Library, left_lies: str, right_lies: str) -> None:
    """The second operand is that of all of them."""
    left, right = matrices()
    batch = LIES[left_lies](torch.stack([left + n for n in range(4)]))
    all_right = LIES[right_lies](right).expand(4, 7, 3)
    torch.testing.assert_close(run(product_of(aten.bmm.default, batch, all_right), batch, all_right), batch @ right)
    assert library.calls == 1


def test_a_row_is_a_matrix_and_a_matrix_a_batch(library: Library) -> None:
    left, right = matrices()
    for target, *given in ((aten.mm.default, left[:1], right), (aten.bmm.default, left[None], right[None])):
        torch.testing.assert_close(run(product_of(target, *given), *given), target(*given))
    assert library.calls == 2


@pytest.mark.parametrize(
    ("setting", "dtype", "value"),
    [
        ("_get_deterministic_algorithms", BF16, True),
        ("_len_torch_dispatch_stack", BF16, 1),
        ("_get_cublas_allow_bf16_reduced_precision_reduction", BF16, (False, True)),
        ("_get_cublas_allow_fp16_accumulation", torch.float16, True),
    ],
)
def test_other_settings_are_torchs_to_follow(
    library: Library, setting: str, dtype: torch.dtype, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = getattr(torch._C, setting)()
    now = [usual]
    monkeypatch.setattr(torch._C, setting, lambda: now[0])
    left, right = matrices(dtype)
    product = product_of(aten.mm.default, left, right)
    assert product is not None
    launch, result = product_launch(product, GPU), torch.empty(5, 3, dtype=dtype)
    expected = left @ right
    for told, called in ((usual, 1), (value, 1), (usual, 2)):
        now[0] = told
        launch(left, right, result.zero_())
        torch.testing.assert_close(result, expected)
        assert library.calls == called


def test_a_change_of_precision_is_torchs_to_follow(library: Library) -> None:
    left, right = matrices()
    product = product_of(aten.mm.default, left, right)
    assert product is not None
    launch, result = product_launch(product, GPU), torch.empty(5, 3)
    before = torch.get_float32_matmul_precision()
    try:
        for precision, called in (("highest", 1), ("high", 1), ("highest", 2)):
            torch.set_float32_matmul_precision(precision)
            launch(left, right, result)
            assert library.calls == called
    finally:
        torch.set_float32_matmul_precision(before)


def test_what_the_library_refuses_is_left_to_torch(library: Library) -> None:
    library.refuses = 15
    left, right = matrices()
    torch.testing.assert_close(run(product_of(aten.mm.default, left, right), left, right), left @ right)
    assert library.calls == 0


def test_an_algorithm_is_chosen_once_for_what_starts_as_the_first_call(library: Library) -> None:
    """Tensors that start at less even addresses are left to torch."""
    left, right = matrices(BF16)
    product = product_of(aten.mm.default, left, right)
    assert product is not None
    launch, result = product_launch(product, GPU), torch.empty(5, 3, dtype=BF16)
    for _ in range(3):
        launch(left, right, result)
    assert (library.searches, library.calls) == (1, 3)
    odd = torch.zeros(36, dtype=BF16)[1:].view(5, 7)
    launch(odd, right, result)
    assert (library.searches, library.calls) == (1, 3) and not result.any()


def test_each_stream_has_its_own_memory_to_work_in(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.workspace_bytes = 64
    asked: list[int] = []
    current = [5]
    memory = torch.empty(64)

    def workspace(device: int, stream: int) -> Tensor:
        asked.append(stream)
        return memory

    monkeypatch.setattr(library_products, "_workspace", workspace)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: current[0])
    left, right = matrices()
    product = product_of(aten.mm.default, left, right)
    assert product is not None
    launch, result = product_launch(product, GPU), torch.empty(5, 3)
    for stream in (5, 5, 6, 6, 5):
        current[0] = stream
        launch(left, right, result.zero_())
        torch.testing.assert_close(result, left @ right)
    assert library.calls == 5 and asked == [5, 6, 5]


def test_gradients_are_nobodys(library: Library) -> None:
    """Neither by the library nor by torch, whatever the inputs ask for."""
    left, right = matrices()
    product = product_of(aten.mm.default, left, right)
    assert product is not None
    for launch in (product_launch(product, GPU), ByTorch(product)):
        result = torch.empty(5, 3)
        launch(left.requires_grad_(), right, result)
        assert not result.requires_grad
        torch.testing.assert_close(result, left.detach() @ right)


@pytest.mark.parametrize("target", [aten.addmm.default, aten._addmm_activation.default])
def test_torch_is_given_the_views_that_its_operator_takes(target: Any) -> None:
    left, right = matrices(BF16)
    bias, right = torch.randn(6).to(BF16)[3:], LIES["transposed, from the middle"](right)
    product = product_of(target, bias, left, right)
    assert product is not None
    result = torch.empty(5, 3, dtype=BF16)
    ByTorch(product)(*map(whole, (bias, left, right)), result)
    torch.testing.assert_close(result, target(bias, left, right))


def test_other_calls_are_no_such_products() -> None:
    left, right = matrices(BF16)
    bias = torch.randn(3).to(BF16)
    assert product_of(aten.addmm.default, bias, left, right) is not None
    assert product_of(aten.addmm.default, bias, left, right, alpha=2) is None
    assert product_of(aten.addmm.default, torch.randn(5, 3).to(BF16), left, right) is None
    assert product_of(aten.addmm.default, torch.ones((), dtype=BF16), left, right) is None
    assert product_of(aten.mm.default, left, right[:, :1]) is None
    assert product_of(aten.mm.default, left[:0], right) is None
    # Sums that are long for their result, as those of a weight's gradient.
    assert product_of(aten.mm.default, left.repeat(1, 3), right.repeat(3, 1)) is None
    assert product_of(aten.mm.default, left.repeat(1, 2)[:, ::2], right) is None
    assert product_of(aten.mm.default, left.double(), right.double()) is None
    assert product_of(ADDMM_GELU, bias, left, right) is not None

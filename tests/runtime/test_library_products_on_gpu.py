"""The library's products on a GPU are torch's, most to the last bit, whatever is set and wherever they are launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.runtime.host import cublas
from compiler.runtime.host.library_products import ProductLauncher

pytestmark = pytest.mark.gpu
BF16 = torch.bfloat16
NAMES = {torch.float32: "float32", torch.float16: "float16", BF16: "bfloat16"}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x @ weight


def with_bias(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, x, weight)


def with_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch._addmm_activation(bias, x, weight)


def batched(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.bmm(x.expand(3, *x.shape), weight.expand(3, *weight.shape))


FUNCTIONS = [product, batched, with_bias, with_relu]
SIZES = [(512, 1024, 2048), (4096, 512, 768), (197, 776, 1000)]


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return torch.compile(function, backend=fusionscope, options={"cuda_graphs": "off"})


def tensors(rows: int, columns: int, inner: int, dtype: torch.dtype, transposed: bool = False) -> list[Tensor]:
    x, bias = torch.randn(rows, inner, device="cuda"), torch.randn(columns, device="cuda")
    weight = (
        torch.randn(columns, inner, device="cuda").t() if transposed else torch.randn(inner, columns, device="cuda")
    )
    return [tensor.to(dtype) for tensor in (x, weight, bias)]


def check(
    call: Callable[..., Tensor], function: Callable[..., Tensor], given: list[Tensor], is_exact: bool = True
) -> None:
    """Sums of float32 with a bias are made in another order than torch's."""
    for _ in range(3):
        result, expected = call(*given), function(*given)
        if is_exact and (given[0].dtype != torch.float32 or function in (product, batched)):
            assert torch.equal(result, expected), (function.__name__, (result - expected).abs().max())
        torch.testing.assert_close(result, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", NAMES, ids=NAMES.values())
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_torchs(function: Callable[..., Tensor], dtype: torch.dtype) -> None:
    for sizes in SIZES:
        for transposed in (False, True):
            torch._dynamo.reset()
            check(compiled(function), function, tensors(*sizes, dtype, transposed))


@contextmanager
def setting(name: str, value: Any, owner: Any = torch.backends.cuda.matmul) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def preferred(library: str) -> Iterator[None]:
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library(library)
    try:
        yield
    finally:
        torch.backends.cuda.preferred_blas_library(before)


CHANGES: dict[str, tuple[torch.dtype, Callable[[], Any]]] = {
    "tf32": (torch.float32, lambda: setting("allow_tf32", True)),
    "bf16 sums": (BF16, lambda: setting("allow_bf16_reduced_precision_reduction", False)),
    "f16 sums": (torch.float16, lambda: setting("allow_fp16_reduced_precision_reduction", False)),
    "f16 accumulation": (torch.float16, lambda: setting("allow_fp16_accumulation", True)),
    "cuBLASLt": (BF16, lambda: preferred("cublaslt")),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_setting_that_changes_between_calls_is_followed(function: Callable[..., Tensor], change: str) -> None:
    dtype, changed = CHANGES[change]
    call, given = compiled(function), tensors(512, 768, 3072, dtype)
    check(call, function, given)
    before = call(*given)
    with changed():
        check(call, function, given, is_exact=change != "cuBLASLt")
    assert torch.equal(call(*given), before)


@pytest.mark.parametrize("dtype", [BF16, torch.float32])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_addresses_streams_and_recordings(function: Callable[..., Tensor], dtype: torch.dtype) -> None:
    """In float32, programs share the sums of so few tiles, for which they want memory on each stream."""
    rows, columns, inner = 197, 768, 3072
    call, given = compiled(function), tensors(rows, columns, inner, dtype)
    check(call, function, given)
    check(call, function, tensors(rows, columns, inner, dtype))
    unaligned = [torch.randn(n + 1, device="cuda").to(dtype)[1:] for n in (rows * inner, inner * columns, columns)]
    check(call, function, [unaligned[0].view(rows, inner), unaligned[1].view(inner, columns), unaligned[2]])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        check(call, function, given)
    torch.cuda.current_stream().wait_stream(side)
    graph: Any = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call(*given)
    given[0].copy_(torch.randn_like(given[0]))
    graph.replay()
    assert torch.equal(result, call(*given))
    check(call, function, given)


def test_deterministic_results_are_torchs_to_give() -> None:
    """Where torch asks for more than its setting, it is torch that says so."""
    call, given = compiled(product), tensors(512, 1024, 2048, BF16)
    check(call, product, given)
    torch.use_deterministic_algorithms(True)
    try:
        expected = product(*given)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error)[:40]):
            call(*given)
    else:
        assert torch.equal(call(*given), expected)
    finally:
        torch.use_deterministic_algorithms(False)
    check(call, product, given)


def test_an_algorithm_is_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    choose, otherwise = cublas.chosen_algorithm, ProductLauncher._otherwise

    def counted_choice(*given: Any) -> Any:
        asked.append("algorithm")
        return choose(*given)

    def counted_call(launch: ProductLauncher, *given: Tensor) -> None:
        asked.append("first call")
        otherwise(launch, *given)

    monkeypatch.setattr(cublas, "chosen_algorithm", counted_choice)
    monkeypatch.setattr(ProductLauncher, "_otherwise", counted_call)
    check(compiled(with_bias), with_bias, tensors(512, 1024, 2048, BF16))
    assert asked == ["first call", "algorithm"]

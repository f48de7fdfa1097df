"""Kernels of matrix products compute what eager does, with what is fused into them: interpreted, judged by float64; and
they are assembled for a GPU without spills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.compile import build
from compiler.schedule.products.loops import Product
from tests.compile_program import call_interpreted, compile_program, compiled_for_gpus, kernel_count

Tensor = torch.Tensor


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]


def rnd(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, dtype=dtype)


def linear_gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b))


def cast_and_product(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x.to(w.dtype) @ w)


def scores(q: Tensor, k: Tensor) -> Tensor:
    return (q.exp().exp() @ k.transpose(1, 2)) * 0.5


def scaled_sums(r: Tensor, x: Tensor, w: Tensor) -> Tensor:
    return torch.addmm(r, x, w, beta=0.5, alpha=3.0).relu()


def scaled_everywhere(x: Tensor, s: Tensor, w: Tensor) -> Tensor:
    return (((x * s) @ (w * s)) * s).relu()


def in_parts(x: Tensor, w: Tensor, b: Tensor, r: Tensor) -> Tensor:
    return F.silu(F.linear(x, w, b)) * r


def gelu_gate(x: Tensor, w: Tensor, b: Tensor, v: Tensor) -> Tensor:
    """Two products of one operand, and what needs both."""
    return F.gelu(F.linear(x, w, b)) * F.linear(x, v)


def gate_inputs(dtype: torch.dtype) -> tuple[Tensor, ...]:
    w, b, v = (rnd(*shape, dtype=dtype) for shape in ((51, 45), (51,), (51, 45)))
    return rnd(30, 45, dtype=dtype), w, b, v


def projections(x: Tensor, q: Tensor, b: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return F.linear(x, q, b), F.linear(x, k, b), F.linear(x, v, b)


def cases() -> list[Case]:
    torch.manual_seed(0)
    halves = [
        Case(
            f"ragged, {dtype}", linear_gelu, (rnd(33, 45, dtype=dtype), rnd(51, 45, dtype=dtype), rnd(51, dtype=dtype))
        )
        for dtype in (torch.float32, torch.float16, torch.bfloat16)
    ]
    bf16 = torch.bfloat16
    return [
        *halves,
        Case("residual", lambda x, w, r: x @ w + r, (rnd(64, 32), rnd(32, 128), rnd(64, 128))),
        Case("bands of tiles", lambda x, w: torch.relu(x @ w), (rnd(170, 33), rnd(33, 40))),
        Case("batch, right transposed", scores, (rnd(3, 20, 24) / 9, rnd(3, 37, 24))),
        Case("left transposed", lambda x, w: (x.t() @ w).t() * 2, (rnd(45, 33), rnd(45, 51))),
        Case("two rows", lambda x, w: torch.relu(x @ w), (rnd(2, 45), rnd(45, 51))),
        Case("two columns", lambda x, w: torch.relu(x @ w), (rnd(20, 45), rnd(45, 2))),
        Case("scaled sums", scaled_sums, (rnd(20, 1), rnd(20, 45), rnd(45, 17))),
        Case("product needed too", lambda x, w: (torch.relu(x @ w), x @ w), (rnd(30, 45), rnd(45, 51))),
        Case("leading dimensions", in_parts, (rnd(2, 9, 40), rnd(48, 40), rnd(48), rnd(2, 9, 48))),
        Case("producer of a ragged operand", lambda x, w: torch.sigmoid(x) @ w, (rnd(30, 45), rnd(45, 51))),
        Case("cast of an operand", cast_and_product, (rnd(30, 45), rnd(45, 51, dtype=bf16))),
        Case("picked rows", lambda x, i, w: x[i] @ w, (rnd(9, 45), torch.tensor([3, 0, 8, 3]), rnd(45, 20))),
        Case("one scale everywhere", scaled_everywhere, (rnd(30, 45), rnd(1), rnd(45, 20))),
        Case("gate and up", gelu_gate, gate_inputs(torch.bfloat16)),
        Case("three of one", projections, (rnd(2, 9, 45), rnd(51, 45), rnd(51), rnd(51, 45), rnd(51, 45))),
        Case("producers of both", lambda x, s, w: (x * s) @ torch.tanh(w), (rnd(30, 45), rnd(45), rnd(45, 20))),
    ]  # fmt: skip


CASES = cases()


def flat(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, list | tuple) else [results]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_one_kernel_gives_what_eager_gives(case: Case) -> None:
    compilation = compile_program(case.function, *case.inputs)
    assert kernel_count(compilation) == (1, 0)
    assert isinstance(compilation.groups[0], Product)
    exact = flat(case.function(*(tensor.double() if tensor.is_floating_point() else tensor for tensor in case.inputs)))
    on_a_cpu = build(compilation).executable.call(list(case.inputs))
    for results in (call_interpreted(compilation, case.inputs), on_a_cpu):
        for got, wanted in zip(results, exact, strict=True):
            half = any(tensor.dtype.itemsize == 2 for tensor in case.inputs)
            dtype = torch.bfloat16 if half and got.dtype == torch.float32 else got.dtype
            error = float((got.double() - wanted).norm() / wanted.norm())
            # Operands are exact, sums are float32, and what is stored is rounded once (twice where the library stores).
            assert error <= (1.0 if dtype.itemsize == 2 else 8.0) * torch.finfo(dtype).eps


def test_rounding_to_tensor_float_32_is_torchs_own_choice() -> None:
    inputs = (rnd(32, 32), rnd(32, 32))
    before = torch.backends.cuda.matmul.fp32_precision
    texts = {}
    try:
        for precision in ("ieee", "tf32"):
            torch.backends.cuda.matmul.fp32_precision = precision
            compilation = compile_program(lambda x, w: torch.relu(x @ w), *inputs)
            (kernel,) = compilation.triton.values()
            texts[precision] = kernel.source
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert all(f'input_precision="{precision}"' in text for precision, text in texts.items())


LARGE: dict[str, tuple[Callable[..., Any], tuple[int, int, int], torch.dtype]] = {
    "GELU and residual": (lambda x, w, b, r: F.gelu(F.linear(x, w, b)) + r, (512, 1024, 512), torch.bfloat16),
    "float32": (lambda x, w, b, r: F.gelu(F.linear(x, w, b)) + r, (256, 256, 256), torch.float32),
    "few rows": (lambda x, w, b, r: torch.relu(F.linear(x, w, b)) + r, (64, 2048, 1024), torch.float16),
}


@pytest.mark.parametrize("name", LARGE)
def test_assembled_for_a_gpu_without_spills(name: str) -> None:
    function, (m, n, k), dtype = LARGE[name]
    shapes = ((m, k), (n, k), (n,), (m, n))
    compilation = compile_program(function, *(torch.empty(shape, dtype=dtype) for shape in shapes))
    assert kernel_count(compilation) == (1, 0)
    (result,) = compiled_for_gpus(compilation)
    assert result.spills == 0

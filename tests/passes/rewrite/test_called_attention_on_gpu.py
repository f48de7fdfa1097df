"""On a GPU, a mask that no fused kernel takes is written out for one, and eager's result stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bench.functions import attention_by_hand
from bench.reproducers import patterns, run_all
from compiler.backend import fusionscope
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import to_double
from tests.passes.rewrite.test_called_attention import masked, of_past, of_rows, rewritten, training, with_gradients

pytestmark = pytest.mark.gpu


def tensors(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(3)
    make = lambda: torch.randn(2, 197, 4, 64, generator=generator, device="cuda", dtype=torch.float64)  # noqa: E731
    return [make().to(dtype).transpose(1, 2) for _ in range(3)]


def of_some_rows(q: Any, k: Any) -> Any:
    """Some queries attend to everything and the others to nothing: rows that are zero by the rules."""
    return (q.sum((1, 3)) > 0)[:, None, :, None].expand(-1, -1, -1, k.shape[2])


def of_turned_bias(q: Any, k: Any) -> Any:
    return (k.detach().mean(1, keepdim=True) @ q.detach().mean(1, keepdim=True).mT).mT


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bfloat16", "float32"])
@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (of_rows, "call.mask_of_ones"),
        (of_past, "call.mask_is_causal"),
        (of_some_rows, "call.mask_written_out"),
        (of_turned_bias, "call.mask_written_out"),
    ],
)
def test_what_becomes_of_a_mask(mask: Callable[[Any, Any], Any], reason: str, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    arguments = training(tensors(dtype))
    rewriting, result = rewritten(masked(mask), arguments)
    assert [record.reason for record in rewriting.records] == [reason]
    fixed = mask(*arguments[:2]).detach()

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, fixed.to(q.dtype) if fixed.is_floating_point() else fixed)

    eager = with_gradients(attend(*arguments), arguments)
    exact = training(list(to_double(tuple(arguments))))
    reference = with_gradients(attend(*exact), exact)
    assert is_correct(with_gradients(result, arguments), reference, eager)


def in_long_rows(x: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], x.shape[-1] + 3)[..., 1:-2].copy_(x)


def behind_one_element(x: Tensor) -> Tensor:
    return x.new_empty(x.numel() + 1)[1:].view(x.shape).copy_(x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("lies", [in_long_rows, behind_one_element])
def test_rows_that_begin_within_a_vector(lies: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    """Written by hand, attention is right wherever its operands lie, which PyTorch's fused operator is not."""
    torch._dynamo.reset()
    arguments = training([lies(x.contiguous()) for x in tensors(dtype)])
    eager = with_gradients(attention_by_hand(*arguments), arguments)
    exact = training(list(to_double(tuple(arguments))))
    reference = with_gradients(attention_by_hand(*exact), exact)
    result = torch.compile(attention_by_hand, backend=fusionscope)(*arguments)
    assert is_correct(with_gradients(result, arguments), reference, eager)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_are_right_after_eager_has_run(is_causal: bool) -> None:
    """PyTorch keeps cuDNN's plans for the gradient by all but its layout, and eager's has another than a compiler's."""
    torch._dynamo.reset()

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    arguments = training(tensors(torch.bfloat16))
    eager = with_gradients(attend(*arguments), arguments)
    exact = training(list(to_double(tuple(arguments))))
    reference = with_gradients(attend(*exact), exact)
    result = torch.compile(attend, backend=fusionscope)(*arguments)
    assert is_correct(with_gradients(result, arguments), reference, eager)


def test_the_file_of_cudnns_attention_is_held_against_its_formula_in_float64(tmp_path: Path) -> None:
    (program,) = patterns("attention_by_hand", "small", "cuda")
    (call,) = run_all(program, tmp_path, "cuda", None)
    assert call["status"] == "right", call

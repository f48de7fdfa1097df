"""Keys and values that are repeated for groups of heads are read where they are, by the same kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from compiler.backend import fusionscope
from compiler.passes.rewrite.reasons import REASONS
from tests.passes.rewrite.test_called_attention import of_past, rewritten, training, with_gradients

LENGTH = 5


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def tensors() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(2, LENGTH, heads, 8, generator=generator).transpose(1, 2) for heads in (6, 2, 2)]


def repeated(x: Any, times: int) -> Any:
    batch, heads, length, depth = x.shape
    return x[:, :, None, :, :].expand(batch, heads, times, length, depth).reshape(batch, heads * times, length, depth)


def tiled(x: Any, times: int) -> Any:
    """All heads, and then all heads again, which is another order."""
    batch, heads, length, depth = x.shape
    return x[:, None].expand(batch, times, heads, length, depth).reshape(batch, heads * times, length, depth)


def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, repeated(k, 3), repeated(v, 3), is_causal=True)


def by_name(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k.repeat_interleave(3, dim=1), v.repeat_interleave(3, 1), scale=0.2)


def beside_a_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, repeated(k, 3), repeated(v, 3), attn_mask=of_past(q, k))


def in_another_order(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, tiled(k, 3), tiled(v, 3))


def keys_alone(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, repeated(k, 3), tiled(v, 3))


@pytest.mark.parametrize(
    ("function", "reasons"),
    [
        (by_hand, ["call.heads_where_they_are"]),
        (by_name, ["call.heads_where_they_are"]),
        (beside_a_mask, ["call.mask_is_causal", "call.heads_where_they_are"]),
        (in_another_order, []),
        (keys_alone, []),
    ],
)
def test_heads_that_are_repeated(function: Callable[..., Any], reasons: list[str]) -> None:
    arguments = training(tensors())
    rewriting, result = rewritten(function, arguments)
    assert [record.reason for record in rewriting.records] == reasons
    assert all(record.nodes == ["scaled_dot_product_attention"] for record in rewriting.records)
    assert [record.message for record in rewriting.records] == [REASONS[reason][0] for reason in reasons]
    eager = with_gradients(function(*arguments), arguments)
    torch.testing.assert_close(with_gradients(result, arguments), eager, rtol=1e-5, atol=1e-5)


def test_another_kernel_is_not_taken() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, repeated(k, 3), repeated(v, 3), dropout_p=0.5)

    rewriting, _ = rewritten(attend, tensors())  # on a CPU, no fused kernel drops weights
    assert [(record.verdict, record.reason) for record in rewriting.records] == [
        ("kept", "call.heads_of_another_kernel")
    ]


def test_compiled_as_right_as_eager() -> None:
    arguments = training(tensors())
    compiled = torch.compile(by_hand, backend=fusionscope)
    result = with_gradients(compiled(*arguments), arguments)
    torch.testing.assert_close(result, with_gradients(by_hand(*arguments), arguments), rtol=1e-5, atol=1e-5)

"""torch's own attention, called and not written by hand, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from compiler.backend import fusionscope

LENGTH, WIDTH = 6, 16


def _self_attention(x: torch.Tensor, module: Any) -> Any:
    return module(x, x, x, need_weights=False)[0]


def _heads(x: torch.Tensor) -> torch.Tensor:
    return x.view(2, LENGTH, 2, 8).transpose(1, 2)


def _mask() -> torch.Tensor:
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(-2)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "sdpa": (lambda x, _: scaled_dot_product_attention(_heads(x), _heads(x.sin()), _heads(x)), lambda: None),
    "sdpa causal": (
        lambda x, _: scaled_dot_product_attention(_heads(x), _heads(x), _heads(x), is_causal=True, scale=0.2),
        lambda: None,
    ),
    "sdpa masked": (
        lambda x, mask: scaled_dot_product_attention(_heads(x), _heads(x), _heads(x), attn_mask=mask),
        _mask,
    ),
    "MultiheadAttention": (_self_attention, lambda: torch.nn.MultiheadAttention(WIDTH, 2, batch_first=True)),
    "MultiheadAttention with weights": (
        lambda x, module: torch.cat([module(x, x, x)[0].flatten(), module(x, x, x)[1].flatten()]),
        lambda: torch.nn.MultiheadAttention(WIDTH, 2, batch_first=True),
    ),
    "TransformerEncoderLayer": (
        lambda x, module: module(x),
        lambda: torch.nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0, batch_first=True),
    ),
    "TransformerEncoderLayer masked": (
        lambda x, module: module(x, src_mask=torch.zeros(LENGTH, LENGTH).masked_fill(~_mask(), float("-inf"))),
        lambda: torch.nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0, batch_first=True),
    ),
}


@pytest.mark.parametrize("trains", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("name", CASES)
def test_result_and_gradients_are_eagers(name: str, trains: bool) -> None:
    torch.manual_seed(0)
    function, make = CASES[name]
    module = make()
    if isinstance(module, torch.nn.Module):
        module.train(trains)
    x = torch.randn(2, LENGTH, WIDTH, requires_grad=trains)

    def run(call: Callable[..., Any]) -> list[torch.Tensor]:
        with torch.set_grad_enabled(trains):
            result = call(x, module)
        if not trains:
            return [result]
        weights = list(module.parameters()) if isinstance(module, torch.nn.Module) else []
        return [result, *torch.autograd.grad(result.square().sum(), [x, *weights])]

    torch._dynamo.reset()
    torch.testing.assert_close(run(torch.compile(function, backend=fusionscope)), run(function), rtol=1e-4, atol=1e-5)

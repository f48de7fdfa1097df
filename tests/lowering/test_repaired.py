"""Library calls that are wrong for arguments which they take."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.backend import fusionscope
from compiler.lowering import repaired


def heads(seed: int, **options: Any) -> torch.Tensor:
    """(batch, heads, tokens, elements), the tokens outside of the heads in memory."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 64, 4, 64, generator=generator).to(**options).transpose(1, 2)


def test_gradient_of_attention_is_laid_out_as_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[torch.Tensor] = []
    monkeypatch.setattr(repaired, "_backward", lambda gradient, *_: taken.append(gradient))
    result = heads(0)
    for gradient in (heads(1).contiguous(), heads(1), torch.tensor(0.5).expand(result.shape)):
        repaired.cudnn_attention_backward(gradient, result, result, result, result)
        assert taken[-1].stride() == result.stride()
        assert torch.equal(taken[-1], gradient)


@pytest.mark.gpu
@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_attention_returned_to_the_caller(is_causal: bool) -> None:
    """The result's gradient comes from outside of the graph, where AOTAutograd makes it contiguous."""
    inputs = [heads(seed, dtype=torch.bfloat16, device="cuda").requires_grad_() for seed in range(3)]
    exact = [one.detach().double().requires_grad_() for one in inputs]

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    result, wanted = torch.compile(attention, backend=fusionscope)(*inputs), attention(*exact)
    upstream = heads(3, dtype=torch.bfloat16, device="cuda").contiguous()
    found = torch.autograd.grad(result, inputs, upstream)
    for one, reference in zip(found, torch.autograd.grad(wanted, exact, upstream.double()), strict=True):
        # A sum of rounded products: a few epsilons of bfloat16 of the gradient as a whole.
        assert (one.double() - reference).norm() <= 4 * torch.finfo(torch.bfloat16).eps * reference.norm()

"""Library calls that give wrong numbers for arguments which they take, put right before they are made.

A wrapper calls the function here in place of the operator; everything else knows the operator alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def cudnn_attention_backward(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, result: Tensor, *others: Any, **settings: Any
) -> tuple[Tensor, ...]:
    """The gradients of cuDNN's attention, from a gradient that lies in memory as the result does.

    One that lies otherwise is read as if it did (PyTorch 2.11 with cuDNN 9 on an H200, float16 and bfloat16): eager's
    gradients of `attention(q, k, v)`, with heads that are views of tokens, are off by their own size where the gradient
    of the result is contiguous. AOTAutograd makes such gradients contiguous, so every compiler meets it.
    """
    if gradient.stride() != result.stride():
        laid_out = torch.empty_strided(result.shape, result.stride(), dtype=gradient.dtype, device=gradient.device)
        gradient = laid_out.copy_(gradient)
    return _backward(gradient, query, key, value, result, *others, **settings)  # type: ignore[no-any-return]


_backward = aten._scaled_dot_product_cudnn_attention_backward.default

#: By operator, what is called in its place.
REPAIRED: dict[Any, Callable[..., Any]] = {_backward: cudnn_attention_backward}

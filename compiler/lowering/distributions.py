"""Random numbers of other distributions, as functions of uniform and normal ones.

Numbers are drawn in float32, whatever the dtype of the result: a half-precision number has too few digits to be the
argument of a logarithm, and is rounded once.
"""

from __future__ import annotations

from math import log1p
from typing import Any

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten
DRAWN = torch.float32


@decomposes(aten.uniform)
def uniform(x: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
    if low > high:  # PyTorch's own call refuses it
        return NotImplemented  # type: ignore[no-any-return]
    return (torch.rand_like(x, dtype=DRAWN) * (high - low) + low).to(x.dtype)


@decomposes(aten.bernoulli.p)
def bernoulli(x: Tensor, p: float = 0.5, **_: Any) -> Tensor:
    return (torch.rand_like(x, dtype=DRAWN) < p).to(x.dtype)


@decomposes(aten.geometric)
def geometric(x: Tensor, p: float, **_: Any) -> Tensor:
    """How many trials there are up to the first success: the logarithm of a uniform number, rounded up."""
    failures = torch.log1p(-torch.rand_like(x, dtype=DRAWN)) / log1p(-p)
    return (torch.floor(failures) + 1).to(x.dtype)


@decomposes(aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor)
def normal(mean: Tensor | float, std: Tensor | float = 1.0, **_: Any) -> Tensor:
    tensors = [number for number in (mean, std) if isinstance(number, Tensor)]
    shape = torch.broadcast_shapes(*(number.shape for number in tensors))
    drawn = torch.randn(shape, dtype=DRAWN, device=tensors[0].device)
    return (drawn * std + mean).to(tensors[0].dtype)


@decomposes(aten.normal.float_float)
def normal_of_size(
    mean: float, std: float, size: Any, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any
) -> Tensor:
    drawn = torch.randn(size, dtype=DRAWN, device=device) * std + mean
    return drawn.to(dtype or torch.get_default_dtype())


@decomposes(aten.normal_functional)
def normal_like(x: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any) -> Tensor:
    return (torch.randn_like(x, dtype=DRAWN) * std + mean).to(x.dtype)


@decomposes(aten.rrelu_with_noise_functional)
def rrelu_with_noise(
    x: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> tuple[Tensor, Tensor]:
    """The slope of each element is drawn anew where it is not above zero, and else one."""
    if not training:
        return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise.clone()
    drawn = torch.rand_like(x, dtype=DRAWN) * (upper - lower) + lower
    slopes = torch.where(x > 0, 1.0, drawn).to(x.dtype)
    return x * slopes, slopes

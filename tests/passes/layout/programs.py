"""Programs with convolutions whose tensors are worth laying out channels-last on an H200, in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Program = Callable[..., Any]
Shapes = tuple[tuple[int, ...], ...]

IMAGE = (2, 16, 12, 10)
FILTER = (16, 16, 3, 3)


def normalised(x: Tensor, mean: Tensor) -> Tensor:
    """Batch norm in evaluation mode, with a mean of its own."""
    return F.batch_norm(x, mean, mean.abs() + 1, mean, mean)


def chain(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(F.conv2d(x, a, padding=1).relu(), b, padding=1).sigmoid()


def residual_block(x: Tensor, a: Tensor, b: Tensor, mean: Tensor) -> Tensor:
    y = normalised(F.conv2d(x, a, padding=1), mean).relu()
    return (normalised(F.conv2d(y, b, padding=1), mean) + x).relu()


def both_returned(x: Tensor, a: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(x, a)
    return y, y.relu(), y.permute(0, 2, 3, 1), y.flatten(2)


def pooled(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    y, places = F.max_pool2d(F.conv2d(x, a, padding=1), 3, 2, 1, return_indices=True)
    return F.avg_pool2d(F.conv2d(y, b, padding=1), 2), places


def branches(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    joined = torch.cat([F.conv2d(x, a, padding=1), F.conv2d(x, b, padding=1), x], 1)
    left, right = joined[:, :16], joined[:, 32:]
    return F.conv2d(left * 2, c) + F.conv2d(right, c)


def resized(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), a)
    y = F.interpolate(y, scale_factor=2, mode="bilinear")
    return F.pixel_shuffle(F.conv2d(y, b), 2), F.interpolate(y, scale_factor=2)


def group_norm(x: Tensor, a: Tensor, scale: Tensor) -> Tensor:
    y = F.conv2d(x, a, padding=1)
    return F.conv2d(F.silu(F.group_norm(y, 4, scale, scale)), a, padding=1)


def layer_norm_of_channels(x: Tensor, a: Tensor, scale: Tensor, linear: Tensor) -> Tensor:
    y = F.layer_norm(F.conv2d(x, a, padding=1).permute(0, 2, 3, 1), (16,), scale, scale)
    return x + F.gelu(y @ linear).permute(0, 3, 1, 2)


def classifier(x: Tensor, a: Tensor, linear: Tensor) -> Tensor:
    return F.conv2d(x, a, padding=1).relu().flatten(1) @ linear


def squeeze_and_excite(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    y = F.conv2d(x, a, padding=1)
    return F.conv2d(y * F.conv2d(y.mean((2, 3), keepdim=True), b).sigmoid(), a)


def separable(x: Tensor, deep: Tensor, point: Tensor) -> Tensor:
    y = F.relu6(F.conv2d(F.conv2d(x, point), deep, padding=1, groups=16))
    return F.conv2d(y, point) + x


def transposed(x: Tensor, a: Tensor, bias: Tensor) -> Tensor:
    return F.conv_transpose2d(F.conv2d(x, a, bias), a, bias, stride=2)


def trained_statistics(x: Tensor, a: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    y = F.batch_norm(F.conv2d(x, a), mean, variance, training=True)
    return F.conv2d(y.relu(), a)


def other_library_calls(x: Tensor, a: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(x, a, padding=1).relu()
    tokens = y.flatten(2).transpose(1, 2)
    ordered, places = torch.sort(y, dim=1, stable=True)
    attended = F.scaled_dot_product_attention(tokens, tokens, tokens)
    return attended, ordered, places, torch.cumsum(y, 1), torch.logcumsumexp(y, 3)


def by_strides(x: Tensor, a: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(x, a, padding=1)
    return y.as_strided((10, 12), (12, 1), 5) * 2, y.view(-1)[::3] + 1, y.contiguous(), y.clone()


def one_pixel(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(F.conv2d(x, a).relu(), b)


def bottleneck(x: Tensor, a: Tensor, b: Tensor, c: Tensor, mean: Tensor) -> Tensor:
    y = normalised(F.conv2d(x, a), mean).relu()
    y = normalised(F.conv2d(y, b, padding=1), mean).relu()
    return (normalised(F.conv2d(y, c, mean), mean) + x).relu()


def read_twice(x: Tensor, a: Tensor) -> Tensor:
    y = x * 2
    return F.conv2d(y, a) + F.conv2d(y, a, dilation=1).relu() + F.conv2d(y[:, :, :, :], a.flip(3))


def in_place(x: Tensor, a: Tensor) -> Tensor:
    y = F.conv2d(x, a, padding=1)
    x.add_(y)
    y.relu_()
    y[:, 3] = 7
    return F.conv2d(y, a)


VECTOR = (16,)
PROGRAMS: dict[str, tuple[Program, Shapes]] = {
    "chain": (chain, (IMAGE, FILTER, FILTER)),
    "residual block": (residual_block, (IMAGE, FILTER, FILTER, VECTOR)),
    "both returned": (both_returned, (IMAGE, FILTER)),
    "pooled": (pooled, (IMAGE, FILTER, FILTER)),
    "branches": (branches, (IMAGE, FILTER, FILTER, (8, 16, 3, 3))),
    "resized": (resized, (IMAGE, FILTER, FILTER)),
    "group norm": (group_norm, (IMAGE, FILTER, VECTOR)),
    "layer norm of channels": (layer_norm_of_channels, (IMAGE, FILTER, VECTOR, (16, 16))),
    "classifier": (classifier, ((2, 16, 4, 4), FILTER, (256, 10))),
    "squeeze and excite": (squeeze_and_excite, (IMAGE, FILTER, (16, 16, 1, 1))),
    "separable": (separable, ((64, 16, 56, 56), (16, 1, 3, 3), (16, 16, 1, 1))),
    "transposed": (transposed, (IMAGE, FILTER, VECTOR)),
    "trained statistics": (trained_statistics, (IMAGE, FILTER, VECTOR, VECTOR)),
    "other library calls": (other_library_calls, (IMAGE, FILTER)),
    "by strides": (by_strides, (IMAGE, FILTER)),
    "one pixel": (one_pixel, ((3, 16, 3, 5), FILTER, (*FILTER[:2], 1, 1))),
    "bottleneck": (bottleneck, (IMAGE, (16, 16, 1, 1), FILTER, (16, 16, 1, 1), VECTOR)),
    "one channel": (one_pixel, ((2, 1, 20, 20), (16, 1, 3, 3), FILTER)),
    "one image": (chain, ((1, *IMAGE[1:]), FILTER, FILTER)),
    "read twice": (read_twice, (IMAGE, FILTER)),
    "in place": (in_place, (IMAGE, FILTER)),
}


def inputs_of(name: str, dtype: torch.dtype = torch.bfloat16) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) / (len(shape) or 1) for shape in PROGRAMS[name][1]]

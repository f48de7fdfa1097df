"""Programs of windows over images, whose elements several results share, and of interpolations of them.

An image in channels-last is a permuted tensor of rows of channels, as a convolution leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.patterns import BF16, Case
from bench.predictions.micro.cases import F32, case, typed

Function = Callable[..., Tensor]


def _of_channels_last(function: Function, image: Tensor, *others: Tensor) -> Tensor:
    return function(image.permute(0, 3, 1, 2), *others)


def largest(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 3, 2, 1)


def largest_scaled(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return F.max_pool2d(F.relu(x * scale.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)), 3, 2, 1)


def average_scaled(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return F.avg_pool2d(F.relu(x * scale.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)), 3, 1, 1)


def halved(x: Tensor) -> Tensor:
    return F.avg_pool2d(x.relu(), 2)


def to_few(x: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(x.relu(), (7, 7))


def mirrored(x: Tensor) -> Tensor:
    return F.avg_pool2d(F.pad(x.relu(), (1, 1, 1, 1), mode="reflect"), 3, 2)


def enlarged(x: Tensor) -> Tensor:
    return F.interpolate(F.gelu(x), scale_factor=2, mode="bilinear")


def repeated_and_joined(x: Tensor) -> Tensor:
    return torch.cat([F.interpolate(x.relu(), scale_factor=2, mode="nearest"), x.repeat(1, 1, 2, 2)], 1)


def windows() -> Iterator[Case]:
    functions: tuple[Function, ...] = (largest, halved, to_few, mirrored, enlarged, repeated_and_joined)
    for dtype, kind in ((F32, "float"), (BF16, "half")):
        for function in functions:
            yield case(f"{function.__name__}_{kind}", function, *typed(dtype, (32, 64, 56, 56)))
            last = partial(_of_channels_last, function)
            yield case(f"{function.__name__}_{kind}_channels_last", last, *typed(dtype, (32, 56, 56, 64)))
        for function in (largest_scaled, average_scaled):
            vectors = typed(dtype, (64,), (64,))
            yield case(f"{function.__name__}_{kind}", function, *typed(dtype, (32, 64, 112, 112)), *vectors)
            last = partial(_of_channels_last, function)
            image = typed(dtype, (32, 112, 112, 64))
            yield case(f"{function.__name__}_{kind}_channels_last", last, *image, *vectors)

"""The suite `convolutions`: one float32 convolution and what follows it, as eager lays images out.

cuDNN may round what a float32 convolution reads to TF32, in one layout and not in the other, so times compare only
where errors do: `ours_rounded` has the knob `tf32` (docs/reasons/layout.precision.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from bench.patterns import Case, Input

#: What follows the convolution, by its name.
THEN: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "pool": lambda y: F.max_pool2d(F.relu(y), 2),
    "mean": lambda y: F.relu(y).mean((2, 3)),
    "norm": lambda y: F.group_norm(y, 8),
    "softmax": lambda y: y.softmax(1),
    "clamp": lambda y: (y * 0.5).clamp(-1, 1),
}


def _case(name: str, image: tuple[int, ...], weight: tuple[int, ...], then: str, **geometry: Any) -> Case:
    is_transposed = "transposed" in name
    convolve = F.conv_transpose2d if is_transposed else F.conv2d
    channels = weight[1] * geometry.get("groups", 1) if is_transposed else weight[0]

    def program(x: Tensor, a: Tensor, bias: Tensor) -> Tensor:
        return THEN[then](convolve(x, a, bias, **geometry))

    # Code of its own: Dynamo keeps what it compiled with the code, and runs eagerly beyond eight of one.
    own = FunctionType(program.__code__.replace(co_name=name), globals(), name, None, program.__closure__)
    small = (max(1, image[0] // 16), image[1], *(max(weight[-1], side // 2) for side in image[2:]))
    full, less = (tuple(Input(shape) for shape in (shape, weight, (channels,))) for shape in (image, small))
    return Case(name, own, full, less)


#: Half of them exact in eager and half rounded, by what an H200 did (torch 2.11).
CONVOLUTIONS: Mapping[str, Case] = {
    case.name: case
    for case in (
        _case("patches_of_16", (32, 3, 224, 224), (768, 3, 16, 16), "gelu", stride=16),
        _case("patches_of_4", (32, 3, 224, 224), (96, 3, 4, 4), "silu", stride=4),
        _case("stem_of_7", (32, 3, 224, 224), (64, 3, 7, 7), "pool", stride=2, padding=3),
        _case("stem_of_11", (32, 3, 224, 224), (64, 3, 11, 11), "pool", stride=4, padding=2),
        _case("stem_of_3", (32, 3, 224, 224), (64, 3, 3, 3), "relu", stride=2),
        _case("few_channels", (32, 16, 112, 112), (32, 16, 3, 3), "relu", padding=1),
        _case("fewer_channels_than_64", (32, 32, 112, 112), (32, 32, 3, 3), "norm", padding=1),
        _case("side_of_5", (32, 64, 27, 27), (192, 64, 5, 5), "pool", padding=2),
        _case("side_of_7", (32, 64, 56, 56), (64, 64, 7, 7), "silu", padding=3),
        _case("channels_64", (32, 64, 56, 56), (64, 64, 3, 3), "relu", padding=1),
        _case("channels_128_strided", (32, 128, 56, 56), (128, 128, 3, 3), "clamp", stride=2, padding=1),
        _case("channels_256", (32, 256, 14, 14), (256, 256, 3, 3), "gelu", padding=1),
        _case("channels_512", (32, 512, 7, 7), (512, 512, 3, 3), "mean", padding=1),
        _case("squeezed", (32, 128, 55, 55), (16, 128, 1, 1), "relu"),
        _case("expanded", (32, 16, 55, 55), (64, 16, 3, 3), "relu", padding=1),
        _case("one_pixel", (32, 256, 56, 56), (64, 256, 1, 1), "silu"),
        _case("classes_of_pixels", (32, 512, 13, 13), (1000, 512, 1, 1), "mean"),
        _case("grouped", (32, 128, 56, 56), (128, 4, 3, 3), "relu", padding=1, groups=32),
        _case("two_groups", (32, 64, 28, 28), (64, 32, 3, 3), "relu", padding=1, groups=2),
        _case("depthwise", (32, 96, 56, 56), (96, 1, 7, 7), "gelu", padding=3, groups=96),
        _case("transposed", (16, 64, 56, 56), (64, 64, 4, 4), "relu", stride=2, padding=1),
        _case("transposed_wide", (16, 128, 28, 28), (128, 64, 2, 2), "softmax", stride=2),
    )
}

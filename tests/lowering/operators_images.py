"""The table's rows of images: interpolation, padding with the edge, blocks as columns, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values

aten = torch.ops.aten

#: (size of the image, size of the result) along an axis: a multiple, a fraction, one element, as many, fewer.
SIZES = [(3, 6), (4, 7), (1, 3), (3, 3), (6, 2)]


def _images(dtype: torch.dtype, rank: int) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 2, 3, *[7, 5, 4][:rank]),), (values(dtype, 1, *[4, 5, 6][:rank], 2).movedim(-1, 1),)]


def _results(dtype: torch.dtype, rank: int) -> list[tuple[Tensor, ...]]:
    """Gradients of results, one of each size; the last is that of a channels-last one."""
    sizes = [[result for _, result in SIZES[place:] + SIZES[:place]][:rank] for place in range(len(SIZES))]
    given = [values(dtype, 1, 2, *size) for size in sizes]
    given.append(values(dtype, 2, *sizes[0], 3).movedim(-1, 1))
    return [(x,) for x in given]


def _image_of(result: Tensor) -> list[int]:
    """The size of the image that a result of one of `SIZES` came from."""
    sizes = {wanted: image for image, wanted in reversed(SIZES)}
    return [*result.shape[:2], *(sizes[size] for size in result.shape[2:])]


def _gradient(function: Callable[..., Tensor], *arguments: Any) -> Callable[[Tensor], Tensor]:
    return lambda g: function(g, list(g.shape[2:]), _image_of(g), *arguments)


def _backward(name: str, rank: int, *arguments: Any) -> Operator:
    function = getattr(aten, f"{name}_backward").default
    label = "".join(f".{argument}".lower() for argument in arguments)
    return Operator(f"{name}.backward{label}", _gradient(function, *arguments), partial(_results, rank=rank), FLOATS)


#: Along an axis that grows from 4 to 7 the caller may have said that it grows by 1.8.
def _scaled(g: Tensor) -> Tensor:
    scaled: Tensor = aten.upsample_bilinear2d_backward(g, [7, 9], [*g.shape[:2], 4, 5], False, 1.8, 1.8)
    return scaled


GRADIENTS = [
    *(_backward(f"upsample_nearest{rank}d", rank) for rank in (1, 2, 3)),
    *(_backward(f"_upsample_nearest_exact{rank}d", rank) for rank in (1, 2, 3)),
    *(_backward("upsample_linear1d", 1, align) for align in (False, True)),
    *(_backward("upsample_bilinear2d", 2, align) for align in (False, True)),
    *(_backward("upsample_trilinear3d", 3, align) for align in (False, True)),
    Operator("upsample_bilinear2d.backward.scaled", _scaled, lambda d: [(values(d, 1, 2, 7, 9),)], FLOATS),
]

LARGER = [
    Operator("upsample_linear1d", lambda x: aten.upsample_linear1d(x, [9], False), partial(_images, rank=1), FLOATS),
    Operator(
        "upsample_trilinear3d", lambda x: aten.upsample_trilinear3d(x, [3, 6, 5], True), partial(_images, rank=3),
        (torch.float32,),
    ),
    Operator(
        "upsample_bicubic2d", lambda x: aten.upsample_bicubic2d(x, [9, 3], False), partial(_images, rank=2), FLOATS
    ),
]  # fmt: skip


#: (kernel, dilation, padding, stride): blocks that touch, that overlap, with gaps inside, with gaps between.
BLOCKS = [(2, 1, 0, 2), (3, 1, 1, 1), (3, 1, 1, 2), ((2, 3), 2, (1, 2), (2, 1)), (2, 1, 1, 3)]


def _columns(dtype: torch.dtype, blocks: tuple[Any, ...]) -> list[tuple[Tensor, ...]]:
    made = F.unfold(values(torch.float32, 2, 3, 6, 5), *blocks)
    columns = values(dtype, *made.shape)
    return [(columns,), (columns[0],)]


FOLDED = [
    *(Operator(f"unfold{blocks}", lambda x, b=blocks: F.unfold(x, *b), partial(_images, rank=2), FLOATS)
      for blocks in BLOCKS),
    *(Operator(f"fold{blocks}", lambda x, b=blocks: F.fold(x, (6, 5), *b), partial(_columns, blocks=blocks), FLOATS)
      for blocks in BLOCKS),
]  # fmt: skip

OPERATORS = [*GRADIENTS, *LARGER, *FOLDED]

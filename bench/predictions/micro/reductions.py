"""Reductions, scans and scatters: many short rows to one long one."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.patterns import BF16, Case
from bench.predictions.micro.cases import case, indices, typed


def sum_inner(x: Tensor) -> Tensor:
    return x.sum(-1)


def largest_inner(x: Tensor) -> Tensor:
    return x.amax(-1)


def place_of_largest(x: Tensor) -> Tensor:
    return x.argmax(-1)


def sum_outer(x: Tensor) -> Tensor:
    return x.sum(0)


def sum_everything(x: Tensor) -> Tensor:
    return x.sum()


def sum_of_exponentials(x: Tensor) -> Tensor:
    return x.exp().sum(-1)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def softmax_outer(x: Tensor) -> Tensor:
    return torch.softmax(x, 0)


def layer_norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],))


def mean_of_channels(x: Tensor) -> Tensor:
    return x.mean((0, 2, 3))


def mean_of_images(x: Tensor) -> Tensor:
    return x.mean((2, 3))


def cumulative(x: Tensor) -> Tensor:
    return x.cumsum(-1)


def cumulative_outer(x: Tensor) -> Tensor:
    return x.cumsum(0)


def add_at(target: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return target.scatter_add(0, places, values)


def add_rows_at(target: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return target.index_add(0, places, values)


def put_at(target: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return target.index_put((places,), values)


#: Rows and columns: many short rows to one long one.
INNER = (
    (1 << 20, 16), (1 << 18, 64), (1 << 16, 256), (1 << 14, 1024), (1 << 14, 4096), (1024, 1 << 16), (64, 1 << 20),
    (4, 1 << 22), (1024, 64), (128, 1024), (4096, 128), (16, 16384),
)  # fmt: skip
OUTER = ((1 << 16, 1024), (4096, 4096), (64, 1 << 18), (1 << 20, 16), (1024, 128), (256, 4096), (1 << 18, 64))


def reductions() -> Iterator[Case]:
    for rows, columns in INNER:
        yield case(f"sum_inner_{rows}x{columns}", sum_inner, (rows, columns))
    for rows, columns in OUTER:
        yield case(f"sum_outer_{rows}x{columns}", sum_outer, (rows, columns))
    for exponent in (10, 14, 18, 22, 24, 27):
        yield case(f"sum_everything_2^{exponent}", sum_everything, (1 << exponent,))
    for rows, columns in ((1 << 18, 64), (16384, 1024), (4096, 8192), (64, 1024), (256, 131072), (8, 1 << 18)):
        yield case(f"softmax_{rows}x{columns}", softmax, (rows, columns))
        yield case(f"layer_norm_{rows}x{columns}", layer_norm, (rows, columns))
    yield case("sum_inner_half", sum_inner, *typed(BF16, (16384, 4096)))
    yield case("layer_norm_half", layer_norm, *typed(BF16, (32768, 768)))
    yield case("softmax_outer", softmax_outer, (1024, 8192))
    yield case("largest_inner", largest_inner, (8192, 2048))
    yield case("place_of_largest", place_of_largest, (8192, 2048))
    yield case("sum_of_exponentials", sum_of_exponentials, (8192, 4096))
    yield case("mean_of_channels", mean_of_channels, (32, 256, 28, 28))
    yield case("mean_of_images", mean_of_images, (64, 512, 14, 14))


def scans_and_scatters() -> Iterator[Case]:
    for rows, columns in ((16384, 4096), (256, 65536), (4096, 256), (64, 1024)):
        yield case(f"cumulative_{rows}x{columns}", cumulative, (rows, columns))
    yield case("cumulative_outer", cumulative_outer, (2048, 4096))
    for exponent in (6, 16, 24):
        places = indices((1 << 21,), 1 << exponent)
        yield case(f"add_at_2^{exponent}", add_at, (1 << exponent,), places, (1 << 21,))
    yield case("add_rows_at", add_rows_at, (65536, 64), indices((1 << 17,), 65536), (1 << 17, 64))
    yield case("put_at", put_at, (1 << 22,), indices((1 << 20,), 1 << 22), (1 << 20,))

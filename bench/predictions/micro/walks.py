"""Programs that walk memory in every way: transposed, strided, in parts, repeated, gathered."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.patterns import BF16, Case
from bench.predictions.micro.cases import case, indices, typed


def add_transposed(x: Tensor, y: Tensor) -> Tensor:
    return x + y.t()


def transposed(x: Tensor) -> Tensor:
    return (x * 2).t().contiguous()


def heads_apart(x: Tensor) -> Tensor:
    return (x + 1).transpose(1, 2).contiguous()


def channels_last(x: Tensor) -> Tensor:
    return x.relu().to(memory_format=torch.channels_last)


def every_second(x: Tensor) -> Tensor:
    return x[..., ::2] + 1


def every_eighth(x: Tensor) -> Tensor:
    return x[..., ::8] + 1


def second_rows(x: Tensor) -> Tensor:
    return x[::2] * 2


def reversed_row(x: Tensor) -> Tensor:
    return x.flip(-1) + x


def joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y], 1) + 1


def padded(x: Tensor) -> Tensor:
    return F.pad(x, (3, 5)) * 2


def outer_product(x: Tensor, y: Tensor) -> Tensor:
    return x[:, None] * y[None, :]


def repeated(x: Tensor) -> Tensor:
    return x.repeat(64, 1) + 1


def add_row(x: Tensor, row: Tensor) -> Tensor:
    return x + row


def walks() -> Iterator[Case]:
    for side in (256, 1024, 4096, 8192):
        yield case(f"add_transposed_{side}", add_transposed, (side, side), (side, side))
    yield case("transposed_half", transposed, *typed(BF16, (4096, 8192)))
    yield case("transposed_tall", transposed, (65536, 64))
    yield case("transposed_narrow", transposed, (1 << 20, 8))
    yield case("heads_apart", heads_apart, *typed(BF16, (8, 2048, 16, 64)))
    yield case("channels_last", channels_last, (32, 128, 56, 56))
    for columns in (1024, 8192):
        yield case(f"every_second_{columns}", every_second, (4096, columns))
        yield case(f"every_eighth_{columns}", every_eighth, (4096, columns))
    yield case("second_rows", second_rows, (8192, 4096))
    yield case("reversed_row", reversed_row, (4096, 4096))
    yield case("joined", joined, (4096, 2048), (4096, 1024))
    yield case("padded", padded, (4096, 4096))
    for rows, columns in ((128, 128), (1024, 1024), (8192, 4096)):
        yield case(f"outer_product_{rows}x{columns}", outer_product, (rows,), (columns,))
        yield case(f"add_row_{rows}x{columns}", add_row, (rows, columns), (columns,))
        yield case(f"add_column_{rows}x{columns}", add_row, (rows, columns), (rows, 1))
    yield case("repeated", repeated, (64, 4096))


def take_rows(table: Tensor, places: Tensor) -> Tensor:
    return table[places] + 1


def take_along(x: Tensor, places: Tensor) -> Tensor:
    return torch.gather(x, 1, places) * 2


def gathers() -> Iterator[Case]:
    for width in (16, 64, 1024):
        yield case(f"take_rows_{width}", take_rows, (1 << 16, width), indices((1 << 14,), 1 << 16))
    yield case("take_rows_half", take_rows, *typed(BF16, (50304, 768)), indices((32768,), 50304))
    for exponent in (12, 18, 26):
        yield case(f"take_elements_of_2^{exponent}", take_rows, (1 << exponent,), indices((1 << 22,), 1 << exponent))
    yield case("take_few_elements", take_rows, (1 << 24,), indices((1 << 12,), 1 << 24))
    yield case("take_along", take_along, (4096, 4096), indices((4096, 1024), 4096))

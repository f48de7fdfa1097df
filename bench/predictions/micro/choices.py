"""Programs in which a fusion may not pay."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bench.patterns import Case
from bench.predictions.micro.cases import case, indices


def normalised(x: Tensor) -> Tensor:
    return x / x.abs().sum()


def both_sums(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(0), x.sum(1)


def costly_row(x: Tensor, row: Tensor) -> Tensor:
    return x + torch.lgamma(torch.tanh(torch.exp(row)) + 2)


def cheap_row(x: Tensor, row: Tensor) -> Tensor:
    return x + (row * 2 + 1)


def costly_table(table: Tensor, places: Tensor) -> Tensor:
    return torch.erf(torch.sin(torch.exp(table)))[places]


def costly_transposed(x: Tensor) -> Tensor:
    return torch.erf(torch.tanh(x)).t().contiguous()


def softmax_transposed(x: Tensor) -> Tensor:
    return torch.softmax(x, -1).t().contiguous()


def two_readers(x: Tensor) -> tuple[Tensor, Tensor]:
    shared = torch.exp(x)
    return shared + 1, shared.sum(-1)


def sum_and_transposed(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(-1), (x + 1).t().contiguous()


def readers_of_one(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    return x + y, x * z


def costly_before_outer_sum(x: Tensor) -> Tensor:
    return torch.erf(torch.tanh(x)).sum(0)


def scan_and_use(x: Tensor) -> Tensor:
    return torch.exp(x).cumsum(-1) * x


def centred_columns(x: Tensor) -> Tensor:
    return x - x.mean(0)


def centred(x: Tensor) -> Tensor:
    return x - x.mean()


def sum_of_gathered(table: Tensor, places: Tensor) -> Tensor:
    return table[places].sum(-1)


def three_statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.abs().max(), x.abs().mean(), x.square().mean()


def choices() -> Iterator[Case]:
    for exponent in (10, 13, 16, 18, 20, 22, 24):
        yield case(f"normalised_2^{exponent}", normalised, (1 << exponent,))
    for exponent in (12, 17, 21):
        yield case(f"centred_2^{exponent}", centred, (1 << exponent,))
        yield case(f"three_statistics_2^{exponent}", three_statistics, (1 << exponent,))
    for rows, columns in ((64, 64), (1024, 1024), (8192, 4096), (16, 1 << 18)):
        yield case(f"both_sums_{rows}x{columns}", both_sums, (rows, columns))
        yield case(f"costly_row_{rows}x{columns}", costly_row, (rows, columns), (columns,))
        yield case(f"cheap_row_{rows}x{columns}", cheap_row, (rows, columns), (columns,))
        yield case(f"centred_columns_{rows}x{columns}", centred_columns, (rows, columns))
        yield case(f"two_readers_{rows}x{columns}", two_readers, (rows, columns))
        yield case(f"sum_and_transposed_{rows}x{columns}", sum_and_transposed, (rows, columns))
        yield case(f"costly_transposed_{rows}x{columns}", costly_transposed, (rows, columns))
        yield case(f"softmax_transposed_{rows}x{columns}", softmax_transposed, (rows, columns))
    for table, places in ((1 << 12, 1 << 22), (1 << 20, 1 << 20), (1 << 22, 1 << 14)):
        yield case(f"costly_table_{table}_{places}", costly_table, (table,), indices((places,), table))
    yield case("costly_before_outer_sum", costly_before_outer_sum, (8192, 2048))
    for rows, columns in ((8192, 2048), (64, 1024)):
        yield case(f"scan_and_use_{rows}x{columns}", scan_and_use, (rows, columns))
    for exponent in (12, 20, 25):
        yield case(f"readers_of_one_2^{exponent}", readers_of_one, *[(1 << exponent,)] * 3)
    yield case("sum_of_gathered", sum_of_gathered, (1 << 20,), indices((4096, 1024), 1 << 20))

"""Reductions over axes in the middle and of several kinds at once, of sizes that nothing divides."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program


@program(normal(1000, 1003), normal(1003), normal(1000, 1003))
def gated_matrix_of_1003_columns(x: Tensor, bias: Tensor, gate: Tensor) -> Tensor:
    return F.gelu(x + bias) * torch.sigmoid(gate)


@program(normal(61, 37, 4099))
def softmax_over_a_middle_axis_of_37(x: Tensor) -> Tensor:
    return torch.softmax(x, 1)


@program(normal(4093, 1021))
def log_sums_of_odd_columns(x: Tensor) -> Tensor:
    return x - torch.logsumexp(x, 0, keepdim=True)


@program(normal(30, 70, 50, 90))
def deviation_over_the_first_and_third(x: Tensor) -> Tensor:
    return (x - x.mean((0, 2), keepdim=True)) * torch.rsqrt(x.var((0, 2), keepdim=True) + 1e-5)


@program(normal(48, 7, 48, 7, 192, dtype=BF16))
def largest_of_windows_of_seven(x: Tensor) -> Tensor:
    return x.float().amax((1, 3)) - x.float().mean((1, 3))


@program(normal(2049, 3073, dtype=F16), normal(3073, dtype=F16))
def softmax_of_odd_rows_with_a_bias(x: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(x * 0.125 + bias, -1)


@program(normal(128, 1001, 65))
def place_of_the_largest_in_the_middle(x: Tensor) -> tuple[Tensor, Tensor]:
    value, place = x.max(1)
    return value, place


@program(normal(4096, 4096))
def rows_summed_and_turned(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(-1), (x + 1).t().contiguous()


@program(normal(257, 1, 513), normal(1, 129, 513))
def distances_of_odd_sets(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).square().sum(-1).sqrt()

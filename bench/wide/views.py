"""Shapes and strides: what is read or written in another order than it lies."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, index, mask, normal, program


@program(normal(4096, 4096))
def transposed_at_both_ends(x: Tensor) -> Tensor:
    return torch.softmax(x.t().contiguous().exp().clamp(max=5), -1).t().contiguous()


@program(normal(64, 128, 1024, dtype=BF16), normal(64, 1024, 128, dtype=BF16))
def sum_with_a_batch_of_transposes(x: Tensor, y: Tensor) -> Tensor:
    return F.gelu(x + y.transpose(1, 2))


@program(normal(4096, 4097))
def rows_and_their_mirror(x: Tensor) -> Tensor:
    return (x + x.flip(1)).abs() - x.flip(0)


@program(normal(8192, 4095))
def every_third_of_every_second(x: Tensor) -> Tensor:
    return x[::2, ::3].exp() - x[1::2, 1::3]


@program(normal(2048, 8192))
def means_of_overlapping_windows(x: Tensor) -> Tensor:
    return x.unfold(1, 16, 4).mean(-1)


@program(normal(4096, 4096))
def diagonal_replaced(x: Tensor) -> Tensor:
    return x - torch.diag(x.diagonal()) + torch.eye(4096, device=x.device, dtype=x.dtype)


@program(normal(16, 2048, 1024))
def upper_triangle_of_rows(x: Tensor) -> Tensor:
    return x.triu(1).sum(-1) - x.tril(-1).sum(-1)


@program(normal(48, 48), normal(100, 100))
def kronecker_product(a: Tensor, b: Tensor) -> Tensor:
    return torch.kron(a, b)


@program(normal(4096), normal(4096), normal(4096))
def outer_sum_and_product(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.tanh(a[:, None] + b) * c[:, None]


@program(*[normal(8192, width) for width in (1, 13, 64, 100, 257, 512, 1000)])
def seven_pieces_side_by_side(*pieces: Tensor) -> Tensor:
    return torch.cat(pieces, 1).sigmoid()


@program(normal(16, 24, 32, 40, 48))
def five_axes_in_another_order(x: Tensor) -> Tensor:
    return x.permute(3, 0, 4, 2, 1).contiguous() + 1


@program(normal(16, 24, 32, 40, 48))
def mean_over_the_second_and_fourth(x: Tensor) -> Tensor:
    return x.mean((1, 3))


@program(normal(4096, 512, dtype=F16))
def each_number_four_times(x: Tensor) -> Tensor:
    return x.repeat_interleave(4, 1) * x.repeat(1, 4)


@program(normal(32, 64, 112, 112))
def channels_to_the_end(x: Tensor) -> Tensor:
    return x.relu().to(memory_format=torch.channels_last)


@program(normal(32, 1000, 33))
def rows_of_thirty_three_to_columns(x: Tensor) -> Tensor:
    return torch.softmax(x, -1).transpose(1, 2).contiguous()


@program(normal(8, 65, 129, 257))
def odd_axes_summed_two_at_a_time(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum((1, 3)), x.sum((0, 2))


@program(normal(512, 12, 64, 64))
def corners_and_centre(x: Tensor) -> Tensor:
    crops = [x[..., :32, :32], x[..., :32, 32:], x[..., 32:, :32], x[..., 32:, 32:], x[..., 16:48, 16:48]]
    return torch.stack([crop.mean((2, 3)) for crop in crops], -1)


@program(normal(2048, 2048), mask(2048, 2048))
def symmetric_where_known(x: Tensor, known: Tensor) -> Tensor:
    both = (x + x.t()) * 0.5
    return torch.where(known & known.t(), both, -both)


@program(normal(3, 5, 7))
def small_axes_turned_round(x: Tensor) -> Tensor:
    return x.permute(2, 0, 1).flip(0) * 2


@program(normal(1, 1))
def one_number(x: Tensor) -> Tensor:
    return x.exp() + 1


@program(normal(8192, 2, 1024, dtype=BF16))
def interleaved_halves_taken_apart(x: Tensor) -> tuple[Tensor, Tensor]:
    return (x[:, 0] * 2).t().contiguous(), x[:, 1] + x[:, 0]


@program(index(2048, 4096, high=1000), normal(2048, 1))
def whole_numbers_times_a_column(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    return x * scale, x.sum(1)


@program(*[normal(2048, 2048)] * 6)
def mean_of_six_checkpoints(*weights: Tensor) -> Tensor:
    return torch.stack(weights).mean(0)


@program(*[normal(1024, 1024, dtype=BF16)] * 5)
def deviation_between_models(*weights: Tensor) -> Tensor:
    return torch.stack(weights).float().std(0)

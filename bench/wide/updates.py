"""Writing into part of a tensor: slices, places that are looked up, caches of keys, sums of what arrives at a place."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, program, uniform


@program(normal(64, 512, 1024), normal(64, 100, 1024))
def slice_replaced_and_scaled(x: Tensor, part: Tensor) -> Tensor:
    y = x * 2
    y[:, 37:137] = torch.tanh(part)
    y[:, :3] += 1
    return y


@program(normal(4, 8, 4096, 128, dtype=BF16), normal(4, 8, 16, 128), index(16, high=4096))
def keys_quantised_into_a_cache(cache: Tensor, key: Tensor, place: Tensor) -> Tensor:
    scale = key.abs().amax(-1, keepdim=True) / 127
    return cache.index_copy(2, place, (torch.round(key / scale) * scale).to(cache.dtype))


@program(normal(100000, 64), index(32768, high=100000), index(32768, high=64), uniform(32768))
def values_put_at_pairs_of_places(table: Tensor, row: Tensor, column: Tensor, value: Tensor) -> Tensor:
    return torch.index_put(table, (row, column), torch.log1p(value), accumulate=True)


@program(normal(262144, 32), index(262144, high=4096))
def largest_of_what_arrives(x: Tensor, place: Tensor) -> Tensor:
    start = torch.full((4096, 32), -torch.inf, dtype=x.dtype, device=x.device)
    return start.scatter_reduce(0, place[:, None].expand(-1, 32), x, "amax")


@program(normal(50000, 128), index(4096, 20, high=50000), gradients=True)
def bags_of_twenty_words(table: Tensor, words: Tensor) -> Tensor:
    return F.embedding_bag(words, table, mode="mean")


@program(normal(32, 2048, 256), mask(32, 2048))
def rows_that_are_masked_filled_with_a_mean(x: Tensor, kept: Tensor) -> Tensor:
    weight = kept[..., None].float()
    mean = (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
    return torch.where(kept[..., None], x, mean)


@program(normal(8192, 1024, dtype=BF16), index(8192, high=8192), gradients=True)
def rows_in_another_order_bf16(x: Tensor, order: Tensor) -> Tensor:
    return F.silu(x[order].float())

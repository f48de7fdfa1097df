"""Lookups: embeddings, columns, interpolation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, normal, positive, program, uniform


@program(index(16384, 26, high=100000), normal(100000, 16))
def interactions_of_categories(category: Tensor, table: Tensor) -> Tensor:
    factors = table[category]
    return 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1)


@program(index(8192, 50, high=50000), normal(50000, 64), uniform(8192, 50))
def weighted_bag_of_words(word: Tensor, table: Tensor, weight: Tensor) -> Tensor:
    return (F.embedding(word, table) * weight[..., None]).sum(1)


@program(index(8192, 50, high=50000), normal(50000, 64, dtype=BF16))
def mean_of_words_that_are_there(word: Tensor, table: Tensor) -> Tensor:
    there = (word >= 5000)[..., None]
    return (table[word] * there).sum(1) / there.sum(1).clamp(min=1)


@program(uniform(1 << 22), normal(257))
def values_between_entries_of_a_table(x: Tensor, table: Tensor) -> Tensor:
    place = x * 255.9
    low = place.floor().long()
    share = place - low
    return table[low] * (1 - share) + table[low + 1] * share


@program(normal(16384, 1000), index(1000, high=1000))
def columns_in_another_order(x: Tensor, order: Tensor) -> Tensor:
    return x[:, order] * 2


@program(normal(8192, 1024), index(8192, 128, high=1024))
def chosen_values_of_rows(x: Tensor, chosen: Tensor) -> Tensor:
    return torch.take_along_dim(x, chosen, 1).softmax(-1)


@program(uniform(1 << 20, 8), index(7, high=8), uniform(7), normal(8))
def tree_of_three_questions(x: Tensor, feature: Tensor, threshold: Tensor, leaf: Tensor) -> Tensor:
    node = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    for _ in range(3):
        value = x.gather(1, feature[node][:, None])[:, 0]
        node = 2 * node + 1 + (value > threshold[node]).long()
    return leaf[node - 7]


@program(index(1 << 22, high=20), index(1 << 22, high=20))
def confusion_of_classes(wanted: Tensor, found: Tensor) -> Tensor:
    pair = wanted * 20 + found
    counts = torch.zeros(400, dtype=torch.int64, device=pair.device)
    return counts.index_add(0, pair, torch.ones_like(pair)).view(20, 20)


@program(normal(1 << 20), index(1 << 20, high=1000), normal(1000), positive(1000))
def scaled_by_the_numbers_of_a_group(x: Tensor, group: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return (x - mean[group]) / (deviation[group] + 0.1)


@program(uniform(1 << 22), normal(64))
def buckets_of_even_width(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    bucket = (x * 64).clamp(max=63).int()
    return bucket, weight[bucket]


@program(index(64, high=1000), normal(1000, 32))
def few_rows_of_a_table(row: Tensor, table: Tensor) -> Tensor:
    return table[row].relu()


@program(normal(4096, 27, 64))
def dots_of_all_pairs_of_features(x: Tensor) -> Tensor:
    row, column = torch.tril_indices(27, 27, -1, device=x.device)
    return (x[:, row] * x[:, column]).sum(-1)

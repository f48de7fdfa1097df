"""Tables whose rows are looked up, forward and backward: gradients are added up where rows were read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, program


@program(index(32, 512, high=30000), normal(30000, 256), gradients=True)
def word_embeddings(words: Tensor, table: Tensor) -> Tensor:
    return F.embedding(words, table)


@program(index(32, 512, high=32000), normal(32000, 512, dtype=BF16), gradients=True)
def scaled_word_embeddings_bf16(words: Tensor, table: Tensor) -> Tensor:
    return F.embedding(words, table, padding_idx=0) * 22.627417


@program(
    index(32, 256, high=20000),
    index(32, 256, high=2),
    normal(20000, 384),
    normal(256, 384),
    normal(2, 384),
    normal(384),
    normal(384),
    gradients=True,
)
def word_place_and_type_embeddings_normed(
    words: Tensor, types: Tensor, table: Tensor, places: Tensor, kinds: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    return F.layer_norm(table[words] + places + kinds[types], (384,), weight, bias)


@program(index(16384, 20, high=100000), normal(100000, 64), gradients=True)
def mean_of_looked_up_rows(items: Tensor, table: Tensor) -> Tensor:
    return table[items].mean(1)


@program(index(65536, high=50000), index(65536, high=50000), normal(50000, 64), normal(50000, 64), gradients=True)
def two_hashed_tables_summed(first: Tensor, second: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return a[first] + b[second]


@program(normal(16, 14, 14, 512), normal(14, 512), normal(14, 512), gradients=True)
def learned_places_of_rows_and_columns(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return x + rows[:, None] + columns[None]


@program(index(65536, high=40000), index(65536, 5, high=40000), *[normal(40000, 128)] * 2, gradients=True)
def word_vectors_with_negative_samples(centre: Tensor, others: Tensor, inner: Tensor, outer: Tensor) -> Tensor:
    scores = (inner[centre][:, None] * outer[others]).sum(-1)
    return -(F.logsigmoid(scores[:, 0] * 0.1) + F.logsigmoid(-scores[:, 1:] * 0.1).sum(1)).mean()


@program(index(16384, 24, high=8000), normal(8000, 16), normal(8000, 1), gradients=True)
def factorisation_machine(features: Tensor, table: Tensor, linear: Tensor) -> Tensor:
    rows = table[features]
    crossed = 0.5 * (rows.sum(1).square() - rows.square().sum(1)).sum(-1)
    return torch.sigmoid(linear[features].sum((1, 2)) + 0.1 * crossed)


@program(*[index(65536, high=20000)] * 2, index(65536, high=200), normal(20000, 128), normal(200, 128), gradients=True)
def translated_entities_distance(head: Tensor, tail: Tensor, relation: Tensor, table: Tensor, kinds: Tensor) -> Tensor:
    """TransE."""
    return (table[head] + kinds[relation] - table[tail] + 1e-6).norm(dim=-1)


@program(normal(16, 196, 768, dtype=BF16), mask(16, 196), normal(768, dtype=BF16), normal(196, 768), gradients=True)
def masked_patches_with_places(x: Tensor, hidden: Tensor, token: Tensor, places: Tensor) -> Tensor:
    return torch.where(hidden[..., None], token, x) + places.to(x.dtype)


@program(normal(32, 196, 768), normal(1, 1, 768), normal(1, 197, 768), gradients=True)
def class_token_before_patches(x: Tensor, token: Tensor, places: Tensor) -> Tensor:
    return torch.cat([token.expand(32, 1, 768), x], 1) + places


@program(normal(65536, 128), index(262144, high=65536), index(262144, high=65536), gradients=True)
def messages_of_a_graph_added_up(nodes: Tensor, source: Tensor, goal: Tensor) -> Tensor:
    return torch.zeros_like(nodes).index_add(0, goal, F.relu(nodes[source]))


@program(index(64, high=100), normal(100, 32), gradients=True)
def small_embedding_tanh(words: Tensor, table: Tensor) -> Tensor:
    return torch.tanh(table[words])

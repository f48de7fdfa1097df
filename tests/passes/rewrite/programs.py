"""Ways in which people write attention, and near misses: what each is, by the reason that the rewrite gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Tensors = tuple[Any, ...]
LENGTH, DEPTH = 6, 8


def heads(dtype: torch.dtype = torch.float32, keys: int = LENGTH, key_heads: int = 2) -> Tensors:
    """Queries, keys and values of (2, 2, LENGTH, DEPTH)."""
    generator = torch.Generator().manual_seed(7)

    def draw(count: int, length: int) -> torch.Tensor:
        return torch.randn(2, count, length, DEPTH, generator=generator, dtype=torch.float64).to(dtype)

    return draw(2, LENGTH), draw(key_heads, keys), draw(key_heads, keys)


def flat(dtype: torch.dtype = torch.float32) -> Tensors:
    return tuple(tensor.flatten(0, 1) for tensor in heads(dtype))


def padding(with_empty_rows: bool = True) -> torch.Tensor:
    """Which keys of each sequence count: (2, 1, 1, LENGTH); of the second sequence none does, if so wanted."""
    kept = torch.ones(2, 1, 1, LENGTH, dtype=torch.bool)
    kept[0, ..., 4:] = False
    kept[1] = not with_empty_rows
    return kept


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1) @ v


def dims_by_name(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(dim0=-2, dim1=-1) * 0.3, dim=-1) @ v


def axes_by_name(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.swapaxes(-2, axis1=-1) * 0.3, dim=-1) @ v


def scaled_before(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.softmax((q * 0.3) @ k.mT, dim=-1).matmul(v)


def scaled_both(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.softmax((q * 0.5) @ (k / 2.0).transpose(2, 3) * 1.5, dim=3) @ v


def three_dimensions(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.bmm(torch.bmm(q, k.transpose(1, 2)).mul(0.2).softmax(-1), v)


def with_baddbmm(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    empty = torch.zeros(4, LENGTH, LENGTH, dtype=q.dtype)
    return torch.bmm(torch.baddbmm(empty, q, k.mT, beta=1.0, alpha=0.4).softmax(dim=-1), v)


def with_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (torch.einsum("bhid,bhjd->bhij", q, k) * 0.3).softmax(dim=-1)
    return torch.einsum("bhij,bhjd->bhid", weights, v)


def einsum_in_other_order(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    weights = torch.softmax(torch.einsum("blhe,bshe->bhls", q, k) * 0.3, dim=-1)
    return torch.einsum("bhls,bshd->blhd", weights, v)


def in_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.softmax((q @ k.mT).float() * 0.3, dim=-1).to(q.dtype)
    return weights @ v


def softmax_names_a_dtype(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.softmax(q @ k.mT * 0.3, dim=-1, dtype=torch.float32).type_as(q) @ v


def causal_tril(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT * 0.3
    mask = torch.tril(torch.ones(LENGTH, LENGTH))
    return scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ v


def causal_triu_added(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
    return (q @ k.mT * 0.3 + mask).softmax(-1) @ v


def causal_in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT
    scores *= 0.3
    scores.masked_fill_(torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(diagonal=1), -1e9)
    return scores.softmax(-1) @ v


def causal_by_positions(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    places = torch.arange(LENGTH)
    return torch.where(places[:, None] >= places, q @ k.mT * 0.3, float("-inf")).softmax(-1) @ v


def causal_filled_later(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    bias = torch.zeros(LENGTH, LENGTH)
    bias.masked_fill_(torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril(0).logical_not(), float("-inf"))
    return (q @ k.mT * 0.3 + bias).softmax(-1) @ v


def sliding_window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    places = torch.arange(LENGTH)
    is_near = (places[:, None] - places).abs() < 2
    return (q @ k.mT * 0.3).masked_fill(~is_near, float("-inf")).softmax(-1) @ v


def window_with_empty_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    kept = torch.tril(torch.ones(LENGTH, LENGTH), diagonal=-1)
    return (q @ k.mT * 0.3).masked_fill(kept == 0, float("-inf")).softmax(-1) @ v


def masked_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).masked_fill(mask == 0, float("-inf")).softmax(-1) @ v


def masked_with_lowest(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT * 0.3
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) @ v


def masked_with_where(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, q @ k.mT * 0.3, torch.tensor(-1e9)).softmax(-1) @ v


def padded_and_causal(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    scores = (q @ k.mT * 0.3).masked_fill(~causal, float("-inf"))
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def additive(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return (q @ k.mT * 0.3 + bias).softmax(-1) @ v


def additive_and_scaled(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return ((bias + q @ k.mT) * 0.3).softmax(-1) @ v


def alibi(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Tensor:
    places = torch.arange(LENGTH)
    distance = (places - places[:, None]).to(q.dtype)
    return (q @ k.mT * 0.3 + slopes[:, None, None] * distance).softmax(-1) @ v


def grouped_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = (tensor.repeat_interleave(2, dim=1) for tensor in (k, v))
    return (q @ k.mT * 0.3).softmax(-1) @ v


def one_head_of_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).softmax(-1) @ v


def followed_by_view(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ((q @ k.mT * 0.3).softmax(-1) @ v).view(2, -1)


def dropout_off(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.dropout((q @ k.mT * 0.3).softmax(-1), 0.5, training=False) @ v


def result_transposed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.softmax(torch.einsum("bihd,bjhd->bhij", q, k) * 0.3, dim=-1)
    return torch.einsum("bhij,bjhd->bdhi", weights, v)


MINUS_INFINITY_IN_ROWS = torch.tensor([0.0, 1.0, float("-inf")] * 2 * LENGTH).view(LENGTH, -1)[:, :LENGTH]
EMPTY_BIAS = MINUS_INFINITY_IN_ROWS.clone()
EMPTY_BIAS[2] = float("-inf")

#: name -> the function, its arguments. Each is attention.
REPLACED: dict[str, tuple[Callable[..., Any], Callable[[], Tensors]]] = {
    function.__name__ + suffix: (function, arguments)
    for function, suffix, arguments in (
        (plain, "", heads),
        (plain, "_bfloat16", lambda: heads(torch.bfloat16)),
        (plain, "_float64", lambda: heads(torch.float64)),
        (plain, "_more_keys", lambda: heads(keys=9)),
        (dims_by_name, "", heads),
        (axes_by_name, "", heads),
        (scaled_before, "", heads),
        (scaled_both, "", heads),
        (three_dimensions, "", flat),
        (with_baddbmm, "", flat),
        (with_einsum, "", heads),
        (einsum_in_other_order, "", heads),
        (in_float32, "", lambda: heads(torch.bfloat16)),
        (softmax_names_a_dtype, "", lambda: heads(torch.bfloat16)),
        (causal_tril, "", heads),
        (causal_triu_added, "", heads),
        (causal_in_place, "", heads),
        (causal_by_positions, "", heads),
        (causal_filled_later, "", heads),
        (sliding_window, "", heads),
        (window_with_empty_rows, "", heads),
        (masked_keys, "", lambda: (*heads(), padding(False))),
        (masked_keys, "_empty_rows", lambda: (*heads(), padding())),
        (masked_keys, "_three_dimensions", lambda: (*flat(), padding()[0])),
        (masked_with_lowest, "", lambda: (*heads(), padding())),
        (masked_with_where, "", lambda: (*heads(), padding())),
        (padded_and_causal, "", lambda: (*heads(), padding())),
        (additive, "", lambda: (*heads(), torch.linspace(-1, 1, LENGTH * LENGTH).view(LENGTH, LENGTH))),
        (additive, "_finite_mask", lambda: (*heads(), (~padding()).float() * -1e9)),
        (additive, "_empty_rows", lambda: (*heads(), EMPTY_BIAS)),
        (additive_and_scaled, "", lambda: (*heads(), MINUS_INFINITY_IN_ROWS)),
        (alibi, "", lambda: (*heads(), torch.tensor([0.5, 0.25]))),
        (grouped_heads, "", lambda: heads(key_heads=1)),
        (one_head_of_keys, "", lambda: heads(key_heads=1)),
        (followed_by_view, "", heads),
        (dropout_off, "", heads),
    )
}


def scores_returned(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = q @ k.mT * 0.3
    return scores.softmax(-1) @ v, scores


def weights_returned(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = (q @ k.mT * 0.3).softmax(-1)
    return weights @ v, weights


def soft_capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(q @ k.mT * 0.3).softmax(-1) @ v


def weights_sharpened(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).softmax(-1).square() @ v


def softmax_of_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).softmax(-2) @ v


def learned_scale(q: Tensor, k: Tensor, v: Tensor, scale: Tensor) -> Tensor:
    return (q @ k.mT * scale).softmax(-1) @ v


def negative_scale(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * -0.3).softmax(-1) @ v


def weak_fill(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).masked_fill(~mask, -100.0).softmax(-1) @ v


def two_fills(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = (q @ k.mT * 0.3).masked_fill(~mask, -1e9)
    return scores.masked_fill(torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1), float("-inf")).softmax(-1) @ v


def rounded_scores(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).bfloat16().softmax(-1).float() @ v


def five_dimensions(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * 0.3).softmax(-1) @ v


def changed_between(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT * 0.3
    k.mul_(2)
    return scores.softmax(-1) @ v


def with_dropout(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.dropout((q @ k.mT * 0.3).softmax(-1), 0.5) @ v


def learned_bias(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return (q @ k.mT * 0.3 + bias).softmax(-1) @ v


def mask_of_a_tensor(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, fill: Tensor) -> Tensor:
    return torch.where(mask, q @ k.mT * 0.3, fill).softmax(-1) @ v


def _square(requires_grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(LENGTH, LENGTH, generator=generator).to(dtype).requires_grad_(requires_grad)


#: reason -> the near miss that has it, its arguments.
KEPT: dict[str, tuple[Callable[..., Any], Callable[[], Tensors]]] = {
    "scores.read_elsewhere": (scores_returned, heads),
    "weights.read_elsewhere": (weights_returned, heads),
    "scores.other_operation": (soft_capped, heads),
    "weights.other_operation": (weights_sharpened, heads),
    "softmax.not_last_dimension": (softmax_of_queries, heads),
    "scale.not_a_number": (learned_scale, lambda: (*heads(), torch.tensor(0.3))),
    "scale.not_positive": (negative_scale, heads),
    "mask.learned": (learned_bias, lambda: (*heads(), _square(True))),
    "mask.wider_dtype": (additive, lambda: (*heads(), _square(dtype=torch.float64))),
    "mask.not_boolean": (mask_of_a_tensor, lambda: (*heads(), padding(), _square())),
    "mask.weak_fill": (weak_fill, lambda: (*heads(), padding())),
    "mask.mixed_fills": (two_fills, lambda: (*heads(), padding())),
    "dtype.mixed": (rounded_scores, heads),
    "shape.rank": (five_dimensions, lambda: tuple(tensor[None] for tensor in heads())),
    "memory.changed_meanwhile": (changed_between, heads),
    "layout.not_kept": (result_transposed, heads),
    "kernel.none": (with_dropout, heads),
}

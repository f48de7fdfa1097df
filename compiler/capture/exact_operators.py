"""Operators that torch has for narrow dtypes alone, written with others that compute in float64 too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def _grouped_mm(
    a: Tensor, b: Tensor, ends: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """`aten._grouped_mm`: the products of groups, which lie one after another along a dimension of what has two
    dimensions; `ends`, int32 of as many as there are groups, has where each ends. The result has the dtype of `a`.

    a [T, K], b [G, K, N]: groups of rows, [T, N]. a [G, M, K], b [K, T]: of columns, [M, T]. a [M, T], b [T, N]: of the
    inner dimension, [G, M, N]. Both of three dimensions: `bmm`. Raises `NotImplementedError` for a bias."""
    if bias is not None:
        raise NotImplementedError("_grouped_mm with a bias has no counterpart in float64")
    if ends is None:
        return torch.bmm(a, b)
    last = [int(end) for end in ends.tolist()]
    groups = list(zip([0, *last], last, strict=False))
    if a.dim() == b.dim() == 2:
        return torch.stack([a[:, first:end] @ b[first:end] for first, end in groups])
    of_rows = a.dim() == 2
    result = a.new_zeros((a.shape[0], b.shape[-1]) if of_rows else (a.shape[1], b.shape[1]))
    for group, (first, end) in enumerate(groups):
        if of_rows:
            result[first:end] = a[first:end] @ b[group]
        else:
            result[:, first:end] = a[group] @ b[:, first:end]
    return result


#: What computes the same in any dtype, by the operator. Its dtype arguments are passed over.
IN_ANY_DTYPE: Mapping[Any, Callable[..., Any]] = {torch.ops.aten._grouped_mm.default: _grouped_mm}

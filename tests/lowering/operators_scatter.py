"""The table's third part: writes at computed indices, with indices that meet, count from the end, or are none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, Samples, values

NUMBERS = (*FLOATS, torch.int64, torch.uint8)


def places(*shape: int, below: int, seed: int = 0) -> Tensor:
    """Indices that meet: about half of them stand twice."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, below, shape, generator=generator)


def rows(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, index, source) for a scatter along dimension 0: equal shapes, a smaller index than source, other
    strides, no elements, no dimensions."""
    make = partial(values, dtype)
    return [
        (make(5, 4), places(6, 4, below=5), make(6, 4, seed=1)),
        (make(4, 7).t(), places(5, 3, below=7), make(6, 6, seed=1).t()[:, ::2]),
        (make(3, 4, 5), places(2, 4, 3, below=3), make(2, 4, 5, seed=1)),
        (make(70), places(300, below=70), make(300, seed=1)),
        (make(5, 4), places(0, 4, below=5), make(6, 4, seed=1)),
        (make(5), places(2, 0, below=5), make(2, 0, seed=1)),
        (make(1, 5).expand(3, 5), places(4, 5, below=3), make(1, 1, seed=1).expand(4, 5)),
        (make(), torch.tensor(0), make(seed=1)),
    ]


def products(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """`rows` whose products stay finite in float16 and do not vanish."""
    return [(x, index, (source / 4 + 1).to(dtype)) for x, index, source in rows(dtype)]


def slices(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, index, slices) for a reduction along dimension 0: slices that meet, none, no dimensions."""
    make = partial(values, dtype)
    return [
        (make(5, 4), places(6, below=5), make(6, 4, seed=1)),
        (make(4, 7, 2).transpose(0, 1), places(5, below=7), make(5, 4, 2, seed=1)),
        (make(5, 4), places(0, below=5), make(0, 4, seed=1)),
        (make(), torch.tensor([0]), make(seed=1)),
    ]


def once(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """The same where no two sources meet."""
    make = partial(values, dtype)
    mixed = torch.stack([torch.randperm(9, generator=torch.Generator().manual_seed(n))[:6] for n in range(4)], 1)
    return [(make(9, 4), mixed, make(6, 4, seed=1)), (make(4, 9).t(), mixed, make(8, 4, seed=1)[:, :])]


def put_samples(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, index, rows of values): an index that meets and counts from the end, of one and two dimensions."""
    make = partial(values, dtype)
    return [
        (make(7, 7, 3), torch.tensor([0, -1, 3, 0, -7, 6]), make(6, 7, 3, seed=1)),
        (make(3, 7, 7).permute(2, 1, 0), places(2, 3, below=7) - 3, make(2, 3, 7, 1, seed=1)),
        (make(7, 7, 3), places(0, below=7), make(0, 7, 3, seed=1)),
    ]


def apart(samples: Samples) -> Samples:
    """Without repeated indices, so that the result does not depend on an order."""

    def unique(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
        make = partial(values, dtype)
        return [
            (make(7, 7, 3), torch.tensor([5, -1, 3, 0]), make(4, 7, 3, seed=1)),
            (make(3, 7, 7).permute(2, 1, 0), torch.tensor([[2, -2], [-7, 6]]), make(2, 2, 7, 1, seed=1)),
            samples(dtype)[-1],
        ]

    return unique


def masked(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    make = partial(values, dtype)
    return [(make(5, 4), values(torch.bool, 5, 4, seed=2), make(), make(5, 4, seed=1))]


def with_specials(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Targets and sources with NaN, infinities and both zeros."""
    edges = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), -float("inf"), 1.5, -1.5]
    first, second = torch.tensor(edges, dtype=dtype).repeat(8), torch.tensor(edges, dtype=dtype).repeat_interleave(8)
    return [(first, torch.arange(64), second), (first[:8], torch.arange(64) % 8, second)]


def _reduce(kind: str, **keywords: Any) -> Callable[..., Tensor]:
    return lambda x, i, s: x.scatter_reduce(0, i, s, kind, **keywords)


def _index_reduce(kind: str, **keywords: Any) -> Callable[..., Tensor]:
    return lambda x, i, s: x.index_reduce(0, i, s, kind, **keywords)


def _assign(x: Tensor, i: Tensor, s: Tensor) -> Tensor:
    x = x.clone()
    x[i] += s
    return x


def _assign_second(x: Tensor, i: Tensor) -> Tensor:
    x = x.clone()
    x[:, i] = 2
    return x


def _add_apart(x: Tensor, i: Tensor) -> Tensor:
    """Index tensors with a slice between them; each chosen element is raised once, however often it is chosen."""
    x[i, :, i] = x[i, :, i] + 1
    return x


SCATTER = [
    Operator("scatter.src", lambda x, i, s: x.scatter(0, i, s), once),
    # Where sources meet eager leaves the last one on a CPU, and so do loops that run in order.
    Operator("scatter.one_value", lambda x, i, s: x.scatter(0, i, 2), rows),
    Operator("scatter.inner", lambda x, i, s: x.t().scatter(1, i.t(), s.t()), once),
    Operator("scatter.add", lambda x, i, s: x.scatter(0, i, s, reduce="add"), rows, NUMBERS),
    Operator("scatter.multiply", lambda x, i, s: x.scatter(0, i, s, reduce="multiply"), products, NUMBERS),
    Operator("scatter_add", lambda x, i, s: x.scatter_add(0, i, s), rows),
    Operator("scatter_add.inner", lambda x, i, s: x.t().scatter_add(1, i.t(), s.t()), lambda d: rows(d)[:2]),
    Operator("scatter_add.of_zeros", lambda x, i, s: (x * 0).scatter_add(0, i, s * s) + 1, rows, NUMBERS),
    *(Operator(f"scatter_reduce.{kind}", _reduce(kind), rows, NUMBERS) for kind in ("sum", "amin", "amax", "mean")),
    *(
        Operator(f"scatter_reduce.{kind}.alone", _reduce(kind, include_self=False), rows, NUMBERS)
        for kind in ("sum", "amin", "amax", "mean")
    ),
    *(Operator(f"scatter_reduce.{kind}.edges", _reduce(kind), with_specials, FLOATS) for kind in ("amin", "amax")),
    Operator("scatter_reduce.mean.wrapped", lambda x, i, s: x.scatter_reduce(0, i, ~s, "mean"), rows, (torch.uint8,)),
    Operator("scatter_reduce.prod", _reduce("prod"), products, (*NUMBERS, torch.bool)),
    Operator("scatter_reduce.prod.alone", _reduce("prod", include_self=False), products, NUMBERS),
    Operator("scatter_reduce.prod.edges", _reduce("prod"), with_specials, FLOATS),
    *(
        Operator(f"index_reduce.{kind}", _index_reduce(kind), slices, NUMBERS)
        for kind in ("prod", "mean", "amin", "amax")
    ),
    *(
        Operator(f"index_reduce.{kind}.alone", _index_reduce(kind, include_self=False), slices, NUMBERS)
        for kind in ("prod", "mean", "amin", "amax")
    ),
]

PUT = [
    Operator("index_put", lambda x, i, s: x.index_put((i,), s), apart(put_samples)),
    Operator("index_put.one", lambda x, i, s: x.index_put((i,), s.flatten()[:1] if s.numel() else s), put_samples),
    Operator("index_put.two", lambda x, i, s: x.index_put((i, i), s[..., 0, :]), apart(put_samples)),
    Operator("index_put.second", lambda x, i, s: _assign_second(x, i), put_samples),
    Operator("index_put.accumulate", lambda x, i, s: x.index_put((i,), s, accumulate=True), put_samples),
    Operator("index_put.apart", lambda x, i, s: _add_apart(torch.stack([x, x], 1), i), put_samples, NUMBERS),
    Operator("index_put.mask", lambda x, m, v, s: x.index_put((m,), v), masked),
    Operator("index_put.rows_of_mask", lambda x, m, v, s: x.index_put((m[:, 0],), v), masked),
    Operator("index_assign", _assign, apart(put_samples), NUMBERS),
    Operator("index_add", lambda x, i, s: x.index_add(0, i % 7, s, alpha=2), lambda d: put_samples(d)[:1], NUMBERS),
    Operator("index_copy", lambda x, i, s: x.index_copy(0, i % 7, s), lambda d: apart(put_samples)(d)[:1]),
    Operator("index_fill", lambda x, i, s: x.index_fill(1, i.flatten(), 1), put_samples),
    Operator("index_fill.tensor", lambda x, i, s: x.index_fill(0, i.flatten(), s.sum().to(x.dtype)), put_samples),
    Operator("put", lambda x, i, s: x.put(i, s.flatten()[: i.numel()].view(i.shape)), apart(put_samples)),
    Operator(
        "put.accumulate", lambda x, i, s: x.put(i, s.flatten()[: i.numel()].view(i.shape), accumulate=True), put_samples
    ),
]  # fmt: skip


OPERATORS = [*SCATTER, *PUT]

"""The table's second half: operators that move, pick and build elements, norms, losses, library calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.lowering.operators import (
    FLOATS,
    Operator,
    images,
    indexed,
    looked_up,
    matrices,
    one,
    unsigned,
    values,
)

NUMBERS = (*FLOATS, torch.int64)


def cube(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 2, 6, 4),), (values(dtype, 4, 6, 2).transpose(0, 2),), (values(dtype, 2, 12, 4)[:, ::2],)]


def plus(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The view as the operand of a pointwise operator, so that its index arithmetic runs."""
    return lambda x: function(x + x) + 1


def _view(name: str, function: Callable[[Tensor], Tensor], samples: Any = cube) -> list[Operator]:
    return [Operator(name, function, samples), Operator(f"{name}.read", plus(function), samples, (torch.float32,))]


VIEWS = [
    *_view("reshape", lambda x: x.reshape(6, 8)),
    *_view("reshape.merge", lambda x: x.reshape(2, 24)),
    *_view("reshape.split", lambda x: x.reshape(2, 2, 3, 4, 1)),
    *_view("flatten", lambda x: x.flatten()),
    *_view("permute", lambda x: x.permute(2, 0, 1)),
    *_view("transpose", lambda x: x.transpose(0, -1)),
    *_view("permute.reshape", lambda x: x.permute(0, 2, 1).reshape(8, 6)),
    *_view("expand", lambda x: x.unsqueeze(1).expand(-1, 3, -1, -1)),
    *_view("slice", lambda x: x[:, 1:5:2, -3:]),
    *_view("select", lambda x: x[:, -2]),
    *_view("squeeze", lambda x: x[:1].squeeze()),
    *_view("split", lambda x: torch.split(x, 4, 1)[1]),
    *_view("chunk", lambda x: x.chunk(2, -1)[1]),
    *_view("unbind", lambda x: x.unbind(1)[3]),
    *_view("split_sizes", lambda x: torch.split(x, [1, 2, 3], 1)[2]),
    *_view("flip", lambda x: x.flip(0, 2)),
    *_view("flip.reshape", lambda x: x.flip(1).reshape(8, 6)),
    *_view("repeat", lambda x: x.repeat(2, 1, 3)),
    *_view("repeat.front", lambda x: x.repeat(2, 1, 2, 1)),
    *_view("diagonal", lambda x: x.diagonal(1, 1, 2)),
    *_view("unfold", lambda x: x.unfold(1, 3, 2)),
    Operator("as_strided.flipped", lambda x: x.flip(0).as_strided((2, 3), (1, 2), 1) + 1, cube, (torch.float32,)),
    Operator(
        "resize.less", lambda x: torch.ops.aten.resize(x, [x.numel() // 2]), lambda d: cube(d)[:2], falls_back=True
    ),
    Operator(
        "resize.more", lambda x: torch.ops.aten.resize(x, [2, x.numel()])[0] * 1, lambda d: cube(d)[:2], falls_back=True
    ),
    *_view("as_strided", lambda x: x.as_strided((2, 3), (1, 2), 1)),
    *_view("roll", lambda x: x.roll(2, 1)),
    *_view("repeat_interleave", lambda x: x.repeat_interleave(2, 1)),
    *_view("movedim", lambda x: x.movedim(0, 2)),
    *_view("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), images),
    *_view("tile", lambda x: x.tile(2, 2)),
    *_view("rot90", lambda x: x.rot90(1, (1, 2))),
    Operator("input", lambda x: x, one),
    Operator("views", lambda x: (x.t(), x[0], x + 1), lambda d: matrices(d)[:2]),
    Operator(
        "view_as_real", lambda x: torch.view_as_real(torch.complex(x, x)), cube, (torch.float32,), falls_back=True
    ),
]

PARTS = [
    Operator("cat", lambda a: torch.cat([a, a[:, :3] * 2, a], 1), cube),
    Operator("cat.mixed", lambda a: torch.cat([a, a.float(), a[:0].int()], 0), cube),
    Operator("cat.reshape", lambda a: torch.cat([a, a], 1).reshape(2, -1) + 1, cube),
    Operator("cat.of_reshape", lambda a: torch.cat([a.reshape(8, 6), a.flip(1).reshape(8, 6)], 1), cube),
    Operator("stack", lambda a: torch.stack([a, a + a], 1), cube),
    Operator("pad", lambda a: F.pad(a, (1, 2, -1, 3), value=1), cube),
    Operator("pad.zero", lambda a: F.pad(a, (2, 0)), cube),
    Operator("pad.reflect", lambda a: F.pad(a, (2, 1), mode="reflect"), cube, FLOATS),
    Operator("pad.replicate", lambda a: F.pad(a, (2, 1), mode="replicate"), cube, FLOATS),
    Operator("tril", lambda a: a.tril(-1), cube),
    Operator("triu", lambda a: a.triu(1), cube),
    Operator("slice_scatter", lambda a: torch.slice_scatter(a, a[:, :2] + a[:, :2], 1, 1, 5, 2), cube),
    Operator("select_scatter", lambda a: torch.select_scatter(a, a[:, 0] + a[:, 1], 1, -2), cube),
    Operator("slice_assign", lambda a: _assign(a), cube),
]


def _assign(x: Tensor) -> Tensor:
    x = x.clone()
    x[:, 1:3] = 1
    x[0] += x[1]
    return x


CREATION = [
    Operator("full", lambda x: x + torch.full((4,), 0.1, dtype=x.dtype), cube, NUMBERS),
    Operator("arange", lambda x: x + torch.arange(4), cube, NUMBERS),
    Operator(
        "linspace",
        lambda x: (
            x + torch.linspace(4.3, -3, 4),
            torch.linspace(4.3, -3, 50, dtype=torch.int64),
            torch.linspace(1, 9, 1),
        ),
        cube,
        NUMBERS,
    ),
    Operator("logspace", lambda x: x + torch.logspace(-1, 2, 4), cube, (torch.float32,), falls_back=True),
    Operator("linspace.read_later", lambda x: x[:2].sum((1, 2)) + torch.linspace(1, 0, 5)[:2], cube, (torch.float32,)),
    Operator("linspace.tensor", lambda x: torch.linspace(x[0, 0, 0], 7, 6, dtype=torch.float32), cube, NUMBERS),
    Operator("arange.float", lambda x: (x + torch.arange(1.0, 3.0, 0.5), torch.arange(5, 0, -2)), cube, NUMBERS),
    Operator("linspace.read", lambda x: x * torch.linspace(0, 1, 4), cube, FLOATS),
    Operator("tril_indices", lambda x: x.flatten()[torch.tril_indices(6, 4, -1).sum(0)], cube, NUMBERS),
    Operator("eye", lambda x: x * torch.eye(6, 4), cube, NUMBERS),
    Operator("zeros_like", lambda x: (torch.zeros_like(x), torch.ones_like(x) + x, torch.full_like(x, 2)), cube),
    Operator("constant", lambda x: (x * torch.tensor(2.5), torch.tensor([1, 2])), cube, NUMBERS),
    Operator("causal", lambda x: x.masked_fill(torch.ones(6, 4, dtype=torch.bool).triu(1), 0), cube, NUMBERS),
    Operator("empty_result", lambda x: (x[:0] + 1, x[:, :0].sum((1, 2))), cube, NUMBERS),
    Operator("one_hot", lambda x, i: F.one_hot(i, 4), unsigned(indexed), (torch.float32,)),
]

INDEXING = [
    Operator("embedding", lambda w, i: F.embedding(i, w), looked_up, FLOATS),
    Operator("index", lambda x, i: x[i], indexed),
    Operator("index.second", lambda x, i: x[:, i], indexed),
    Operator("index.two", lambda x, i: x[i, i], indexed),
    Operator("index.apart", lambda x, i: torch.stack([x, x], 1)[i, :, i], indexed),
    Operator("index_select", lambda x, i: x.index_select(0, i.flatten()), looked_up),
    Operator("gather", lambda x, i: x.gather(0, i.reshape(-1, 1).expand(-1, 5)), unsigned(indexed)),
    Operator("take_along_dim", lambda x, i: x.take_along_dim(x.argsort(1), 1), unsigned(indexed), NUMBERS),
    Operator(
        "scatter",
        lambda x, i: x.scatter(1, i.reshape(-1)[:1].expand(4).reshape(4, 1), 1),
        lambda d: [unsigned(indexed)(d)[0]],
    ),
]


def _rows_of(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 3, 37),), (values(dtype, 37, 3).t(),), (values(dtype, 2, 3, 8),)]


def _logits(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 5, 7), torch.tensor([0, 6, 3, -100, 2]))]


def _norm_inputs(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(x, values(dtype, 4, seed=1), values(dtype, 4, seed=2)) for (x,) in images(dtype)]


def gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Of a sum of the results, each weighted by its own value."""
    pulled: Any = torch.func.vjp(function, x)
    result, pull_back = pulled
    weighted: Tensor = pull_back(result)[0]
    return weighted


NORMS = [
    Operator("softmax", lambda x: x.softmax(-1), _rows_of, FLOATS),
    Operator("softmax.0", lambda x: x.softmax(0), _rows_of, FLOATS),
    Operator("log_softmax", lambda x: x.log_softmax(-1), _rows_of, FLOATS),
    Operator("softmax.float", lambda x: x.softmax(-1, dtype=torch.float32), _rows_of, FLOATS),
    Operator("layer_norm", lambda x: F.layer_norm(x, x.shape[-1:]), _rows_of, FLOATS),
    Operator("rms_norm", lambda x: F.rms_norm(x, x.shape[-1:]), _rows_of, FLOATS),
    Operator("batch_norm", lambda x, w, b: F.batch_norm(x, b * 0, w.abs() + 1, w, b), _norm_inputs, FLOATS),
    Operator("batch_norm.training", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), _norm_inputs, FLOATS),
    Operator("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), _norm_inputs, FLOATS),
    Operator("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), _norm_inputs, FLOATS),
    Operator("normalize", lambda x: F.normalize(x, dim=-1), _rows_of, FLOATS),
    Operator("cross_entropy", F.cross_entropy, _logits, FLOATS),
    Operator("nll_loss", lambda x, t: F.nll_loss(x, t, reduction="none"), _logits, FLOATS),
    Operator("mse_loss", lambda x: F.mse_loss(x, x * 2), _rows_of, FLOATS),
    Operator("smooth_l1", lambda x: F.smooth_l1_loss(x, x * 2), _rows_of, FLOATS),
    Operator("bce_logits", lambda x: F.binary_cross_entropy_with_logits(x, x.sigmoid()), _rows_of, FLOATS),
    Operator("cosine_similarity", lambda x: F.cosine_similarity(x, x.flip(0), -1), _rows_of, FLOATS),
    Operator("upsample", lambda x: F.interpolate(x, scale_factor=2), images, FLOATS),
    Operator("bilinear", lambda x: F.interpolate(x, size=(9, 5), mode="bilinear"), images, FLOATS),
    Operator("global_pool", lambda x: F.adaptive_avg_pool2d(x, 1), images, FLOATS),
    Operator("avg_pool", lambda x: F.avg_pool2d(x, 2, padding=1), images, FLOATS),
    Operator("avg_pool.odd", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), images, FLOATS),
    Operator("adaptive_pool", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), images, FLOATS),
    *(
        Operator(f"{name}.backward", partial(gradient, function), images, (torch.float32,))
        for name, function in {
            "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
            "max_pool.plain": lambda x: F.max_pool2d(x, 2),
            "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            "avg_pool.ceil": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            "adaptive_pool": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
        }.items()
    ),
    Operator("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), images, FLOATS),
]


def _products(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [
        (values(dtype, 3, 5), values(dtype, 5, 4, seed=1)),
        (values(dtype, 5, 3).t(), values(dtype, 4, 5, seed=1).t()),
    ]


def _positive(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Products whose sums cancel nothing, as no sum of ours has the order of the library's."""
    return [(a.abs(), b.abs()) for a, b in _products(dtype)]


VECTORS = [
    Operator("mm.row", lambda a, b: (a[:1] @ b).relu(), _positive, FLOATS),
    Operator("mm.column_of_a_batch", lambda a, b: a.expand(2, -1, -1) @ b[:, :1].expand(2, -1, -1), _positive, FLOATS),
    Operator("mm.outer", lambda a, b: a[:, :1] @ b[:1] + 1, _positive, FLOATS),
    Operator("mv", lambda a, b: a @ b[:, 0] + a[0].dot(b[:, 1]), _positive, FLOATS),
    Operator("addmm.row", lambda a, b: torch.addmm(b[0], a[:1], b, beta=0.5, alpha=3), _positive, FLOATS),
]

LIBRARY = [
    Operator("mm", lambda a, b: (a @ b).relu(), _products, FLOATS),
    Operator("mm.view", lambda a, b: a.flip(1) @ (b + 1)[:, :2], _products, FLOATS),
    Operator("linear", lambda a, b: F.linear(a, b.t(), b[0]), _products, FLOATS),
    Operator("bmm", lambda a, b: a.expand(2, -1, -1) @ b.expand(2, -1, -1), _products, FLOATS),
    Operator(
        "conv2d",
        lambda x: F.conv2d(x, x[:, :, :3, :3].contiguous(), x[0, 0, 0, :2], padding=1).relu(),
        images,
        (torch.float32,),
    ),
    Operator("attention", lambda x: F.scaled_dot_product_attention(x, x, x), images, (torch.float32,)),
    Operator("sort", lambda x: x.sort(1), cube),
    Operator("topk", lambda x: x.topk(2, 1), cube, NUMBERS),
    Operator("complex", lambda x: torch.fft.fft(x).abs(), cube, (torch.float32,), falls_back=True),
]

OPERATORS = [*VIEWS, *PARTS, *CREATION, *INDEXING, *NORMS, *VECTORS, *LIBRARY]

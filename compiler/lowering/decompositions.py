"""Which ATen operators AOTAutograd takes apart before lowering sees the graph.

PyTorch's own decompositions are used wherever they give the loops that one would write (a variance in two passes, a
softmax of maximum, sum and quotient). What stays whole is what a library does best, and what `compiler/lowering` has a
better loop for.

An operator that is taken apart has a lowering only where a decomposition of another one calls it after the table was
asked, as interpolation with open sizes calls `_unsafe_index`: it would else become a library call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial, wraps
from typing import Any
from unittest import mock

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._ops import OpOverload

from compiler.lowering import (  # noqa: F401  (which have decompositions of their own)
    distances,
    distributions,
    embeddings,
    foreach,
    index_put,
    losses,
    scatter_reduce,
    searching,
)
from compiler.lowering.registry import DECOMPOSITIONS, decomposes

aten = torch.ops.aten

#: Taken apart besides what PyTorch's own table takes apart.
SPLIT = """
    _softmax _log_softmax native_layer_norm native_group_norm
    native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training
    _native_batch_norm_legit_functional _batch_norm_with_update _batch_norm_with_update_functional
    _batch_norm_no_update batch_norm_backward
    gelu elu leaky_relu hardtanh relu6 selu prelu rrelu_with_noise_backward
    native_dropout dropout cauchy exponential log_normal
    special_ndtr std std_mean logsumexp norm linalg_vector_norm
    tril_indices triu_indices unbind_copy
    upsample_nearest1d upsample_nearest2d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d grid_sampler_2d
""".split()

#: Kept whole although it takes them apart: a library's work, or lowered by ours in a better way.
KEPT = """
    baddbmm mv dot vdot scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu
    embedding_dense_backward cat stack select_scatter index_select take_along_dim gather
    tril triu eye fill sum var arange linspace logspace floor_divide im2col col2im
""".split()


#: Of images of uint8, ATen rounds what it makes of rows before it makes a result of it, and its weights too. PyTorch's
#: decompositions differ from that by one in many elements, so such images are left whole.
ROUNDED_IN_STEPS = (aten.upsample_bilinear2d.default, aten.upsample_bicubic2d.default)

#: What stands around PyTorch's own decomposition of an operator: functions that take it before the arguments.
_AROUND: dict[OpOverload[..., Any], Callable[..., Any]] = {}


def _around(*targets: OpOverload[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _AROUND.update(dict.fromkeys(targets, function))
        return function

    return register


def _unless(is_refused: Callable[[torch.dtype], bool], decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """The decomposition, unless a dtype that is refused is among those of its arguments."""

    @wraps(decomposition)
    def decompose(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        dtypes = (x.dtype if isinstance(x, torch.Tensor) else x for x in given)
        refused = any(isinstance(dtype, torch.dtype) and is_refused(dtype) for dtype in dtypes)
        return NotImplemented if refused else decomposition(*args, **kwargs)

    return decompose


def _is_complex(dtype: torch.dtype) -> bool:
    return dtype.is_complex


@decomposes(aten.native_group_norm.default)
def _native_group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    samples: int,
    channels: int,
    positions: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of x (samples, channels, positions, in any shape): normalised by groups of channels, means (samples, groups), and
    reciprocals of the standard deviations, all in x's dtype.

    With a weight or a bias each channel of a sample has one factor and one term, as in eager's kernels: one
    instruction for an element. PyTorch's decomposition has them on a CPU alone."""
    computed = torch.float64 if x.dtype == torch.float64 else torch.float32
    grouped = x.to(computed).reshape(samples, groups, channels // groups, positions)
    variance, mean = torch.var_mean(grouped, (2, 3), correction=0, keepdim=True)
    reciprocal = torch.rsqrt(variance + eps)
    if weight is None and bias is None:
        result = (grouped - mean) * reciprocal
    else:
        factor = reciprocal if weight is None else reciprocal * weight.reshape(1, groups, channels // groups, 1)
        term = -mean * factor
        if bias is not None:
            term = term + bias.reshape(1, groups, channels // groups, 1)
        result = grouped * factor + term
    mean, reciprocal = mean.reshape(samples, groups), reciprocal.reshape(samples, groups)
    return result.reshape(x.shape).to(x.dtype), mean.to(x.dtype), reciprocal.to(x.dtype)


@decomposes(aten.silu_backward.default)
def _silu_backward(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """PyTorch's decomposition has 1 / (1 + exp(-x)) in the place of the sigmoid, which is another division beside the
    one of the SiLU that is computed again."""
    if not x.dtype.is_floating_point:
        return NotImplemented  # type: ignore[no-any-return]
    computed = torch.float64 if x.dtype == torch.float64 else torch.float32
    value, slope = x.to(computed), torch.sigmoid(x.to(computed))
    return (gradient.to(computed) * slope * (1 + value * (1 - slope))).to(x.dtype)


@_around(aten.linalg_vector_norm.default)
def _counted_from_the_front(
    decomposition: Callable[..., Any], x: torch.Tensor, ord: Any = 2, dim: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Of a norm over dimensions which may be counted from the end. Over one of size 1, torch 2.11 keeps such a
    dimension, and the result has a shape that is not eager's."""
    front = [one % x.ndim for one in dim] if dim is not None and x.ndim else dim
    return decomposition(x, ord, front, *args, **kwargs)


@_around(aten.threshold.default)
def _in_whole_numbers(decomposition: Callable[..., Any], x: torch.Tensor, *numbers: Any) -> Any:
    """ATen converts the numbers to the dtype of the tensor. PyTorch's decomposition computes integers in a float where
    one of the numbers is a float."""
    return decomposition(x, *(numbers if x.dtype.is_floating_point else map(int, numbers)))


@_around(aten.pixel_shuffle.default, aten.pixel_unshuffle.default)
def _contiguous_on_a_gpu(decomposition: Callable[..., Any], x: torch.Tensor, *args: Any) -> Any:
    """The kernel for CPUs alone keeps the layout of its image."""
    result = decomposition(x, *args)
    is_right = x.device.type == "cpu" or result.is_contiguous()
    return result if is_right else result.clone(memory_format=torch.contiguous_format)


@_around(aten.mse_loss_backward.default, aten.huber_loss_backward.default)
def _unless_empty(decomposition: Callable[..., Any], gradient: torch.Tensor, x: torch.Tensor, *args: Any) -> Any:
    """Of the gradient of a mean: PyTorch's divides by the number of elements, also where there are none."""
    count = x.numel()
    is_empty = isinstance(count, int) and count == 0
    return torch.empty_like(x) if is_empty else decomposition(gradient, x, *args)


@_around(aten.unfold_backward.default)
def _with_windows_of_all(
    decomposition: Callable[..., Any], windows: torch.Tensor, sizes: Sequence[Any], dim: int, size: Any, step: Any
) -> Any:
    """Where one window stands for a batch, as the envelope of `torch.istft` does, PyTorch's decomposition adds up place
    by place of the window, each time in a copy of the whole."""
    if sizes and windows.ndim == len(sizes) + 1:
        wanted = [*sizes, size]
        wanted[dim % len(sizes)] = windows.shape[dim % len(sizes)]
        if all(own in (1, other) for own, other in zip(windows.shape, wanted, strict=True)):
            windows = windows.expand(wanted)
    return decomposition(windows, sizes, dim, size, step)


def _operators_looked_up_once() -> AbstractContextManager[Any]:
    """Torch looks up all operators that are made of others, for each of the namespaces that they are in."""
    from torch._export import utils

    return mock.patch.object(utils, "_materialize_cpp_cia_ops", cache(utils._materialize_cpp_cia_ops))


@cache
def _table() -> dict[Any, Callable[..., Any]]:
    with _operators_looked_up_once():
        table: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    split = [getattr(aten, name) for name in SPLIT if hasattr(aten, name)]
    table.update(get_decompositions(split))
    for target, function in _AROUND.items():
        table[target] = wraps(table[target])(partial(function, table[target]))
    table |= DECOMPOSITIONS
    of_reals = (*DECOMPOSITIONS, aten.nan_to_num.default)
    table.update({target: _unless(_is_complex, table[target]) for target in of_reals})
    table.update({target: _unless(lambda dtype: not dtype.is_floating_point, table[target])
                  for target in ROUNDED_IN_STEPS})  # fmt: skip
    kept = {getattr(aten, name) for name in KEPT if hasattr(aten, name)}
    return {target: function for target, function in table.items()
            if getattr(target, "overloadpacket", None) not in kept}  # fmt: skip


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The decomposition table for AOTAutograd (a fresh copy)."""
    return dict(_table())

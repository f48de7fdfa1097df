"""The table's rows of pooling: windows that slide, and windows that adapt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values
from tests.lowering.operators_shapes import gradient


def planes(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 1, 2, 7, 10),), (values(dtype, 2, 5, 4, 3).permute(0, 3, 1, 2),)]


def volumes(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 1, 2, 4, 5, 3),), (values(dtype, 2, 5, 4, 3),)]


def lowest(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Nothing but minus infinity: the place of the largest is still one of the image's."""
    return [(torch.full((1, 1, 4, 4), -float("inf"), dtype=dtype),)]


WHOLE = (*FLOATS, torch.int64)

FORWARD = [
    Operator("avg_pool2d.whole", lambda x: F.avg_pool2d(x, 3, 2, 1), planes, (torch.int64,)),
    Operator("avg_pool3d", lambda x: F.avg_pool3d(x, 2), volumes, FLOATS),
    Operator("avg_pool3d.edges", lambda x: F.avg_pool3d(x, 3, 2, 1, True, False), volumes, FLOATS),
    Operator("avg_pool3d.divisor", lambda x: F.avg_pool3d(x, (2, 3, 2), 1, divisor_override=5), volumes, FLOATS),
    Operator("max_pool2d.whole", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), planes, (torch.int64,)),
    Operator("max_pool2d.lowest", lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), lowest, FLOATS),
    Operator("max_pool3d", lambda x: F.max_pool3d(x, 2, return_indices=True), volumes, WHOLE),
    Operator("max_pool3d.dilated", lambda x: F.max_pool3d(x, 2, 1, 1, 2, return_indices=True), volumes, FLOATS),
    Operator("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), planes, FLOATS),
    Operator("adaptive_avg_pool2d.larger", lambda x: F.adaptive_avg_pool2d(x, (8, 11)), planes, FLOATS),
    Operator("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (3, 2, 5)), volumes, FLOATS),
    Operator("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4), True), planes, FLOATS),
    Operator("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (3, 2, 4), True), volumes, FLOATS),
]


def _backward(name: str, function: Callable[[Tensor], Any], samples: Any) -> Operator:
    return Operator(f"{name}.backward", partial(gradient, function), samples, (torch.float32,))


BACKWARD = [
    _backward("avg_pool3d", lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False), volumes),
    _backward("max_pool3d", lambda x: F.max_pool3d(x, 3, 2, 1), volumes),
    _backward("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), planes),
    _backward("adaptive_avg_pool2d.larger", lambda x: F.adaptive_avg_pool2d(x, (8, 11)), planes),
    _backward("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (3, 2, 5)), volumes),
    _backward("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4)), planes),
    _backward("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (3, 2, 4)), volumes),
]

OPERATORS = [*FORWARD, *BACKWARD]

"""The table's part of the floats of eight bits: casts to and from them, and what only moves them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values

FORMATS = (torch.float8_e4m3fn, torch.float8_e5m2)
SOURCES = (*FLOATS, torch.float64, torch.int64, torch.uint8, torch.bool)


def _numbers(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Numbers of all sizes that a float8 has, ties between two of them, and what is too large or no number."""
    if not dtype.is_floating_point:
        return [(values(dtype, 3, 37, low=-500, high=500),), (values(dtype, 5, 7).t(),), (values(dtype, 0, 3),)]
    sizes = torch.cat([2.0 ** torch.arange(-18, 17), torch.tensor([448.0, 464.0, 465.0, 480.0, 57344.0, 61440.0])])
    mantissas = torch.tensor([1.0, 1.0625, 1.125, 1.1875, 1.25, 1.3, 1.9375, 1.99])
    numbers = torch.cat([(sizes[:, None] * mantissas).flatten(), torch.tensor([0.0, 65000.0])])
    special = torch.tensor([float("nan"), float("inf")])
    signed = torch.cat([numbers, -numbers, special, -special]).to(dtype)
    return [(signed,), (values(dtype, 5, 7, low=-500, high=500).t(),), (values(dtype),)]


def _every_byte(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    return [(every.view(16, 16),), (every.view(8, 32).t()[::2],)]


def _to(wanted: torch.dtype) -> Callable[[Tensor], Any]:
    return lambda x: x.to(wanted)


def _to_and_back(wanted: torch.dtype, x: Tensor) -> Tensor:
    return x.to(wanted).to(x.dtype) * 2


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.float8_")


CASTS = [
    *(Operator(f"to_float8.{_name(form)}", _to(form), _numbers, SOURCES) for form in FORMATS),
    *(Operator(f"float8_and_back.{_name(form)}", partial(_to_and_back, form), _numbers, FLOATS) for form in FORMATS),
    Operator("from_float8", lambda x: (x.float(), x.half(), x.bfloat16(), x.double()), _every_byte, FORMATS),
    Operator("from_one_float8_to_another", lambda x: [x.to(form) for form in FORMATS], _every_byte, FORMATS),
]

MOVES = [
    Operator("float8.moved", lambda x: torch.cat([x.t().contiguous(), x.t()[1:]], 0), _every_byte, FORMATS),
    Operator("float8.chosen", lambda x: torch.where(x.float() > 1, x, x[:1]), _every_byte, FORMATS),
    Operator("float8.full", lambda x: torch.full((3,), 2.2, dtype=x.dtype), _every_byte, FORMATS),
    Operator("float8.put", lambda x: x.index_put((torch.tensor([3, 1]),), x[:2]), _every_byte, FORMATS),
]

OPERATORS = [*CASTS, *MOVES]

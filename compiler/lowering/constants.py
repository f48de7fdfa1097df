"""Evaluate reductions of constants, such as `torch.ones(512).sum()`, at compile time.

x: r: v0 = 1.0;  v1 = reduce sum v0;  store v1        ->        v0 = 512.0;  store v0
"""

from __future__ import annotations

import torch

from compiler.ir.float8 import FLOAT8
from compiler.ir.interpret import apply
from compiler.ir.nodes import LoopNode
from compiler.ir.ops import RANDOM

Number = bool | int | float

_OF_POSITIONS = RANDOM | frozenset(("load", "index_value", "indirect", "scan"))


def constant_result(node: LoopNode) -> Number | None:
    """The one value of all results of a reduction that depends on no tensor, no position and no size of a call; None
    where there is no such value."""
    if not isinstance(node.reduction_numel, int) or node.layout.dtype in FLOAT8:
        return None
    values: dict[int, torch.Tensor] = {}
    for number, instruction in enumerate(node.body.instructions):
        if instruction.op == "store":
            return values[instruction.operands[0]].to(node.layout.dtype).item()
        if instruction.op == "reduce":
            values[number] = _reduced(str(instruction.value), values[instruction.operands[0]], node.reduction_numel)
        elif instruction.op in _OF_POSITIONS or instruction.index is not None:
            return None
        else:
            values[number] = apply(instruction, values, torch.device("cpu"))
    return None


def _reduced(kind: str, value: torch.Tensor, count: int) -> torch.Tensor:
    """`count` times the same value, reduced; sums and products of floats in double precision, and then rounded."""
    wide = value.double() if value.is_floating_point() else value
    if kind == "sum":
        return (wide * count).to(value.dtype)
    return wide.pow(count).to(value.dtype) if kind == "prod" else value

"""Numbers that Python computes from sizes, such as the `n / (n - 1)` of an unbiased variance.

Where sizes are symbols such a number is known only in a call. It becomes a tensor without dimensions that reads
nothing: a formula of sizes in float64, as Python computes it, that is repeated where it is used.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from compiler.ir.ops import ops
from compiler.lowering.values import CannotLower, Position, TensorValue

FUNCTIONS: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "truediv",
    operator.pow: "pow",
    operator.neg: "neg",
    math.sqrt: "sqrt",
    torch._sym_sqrt: "sqrt",  # type: ignore[attr-defined]
}


def scalar(target: Any, args: tuple[Any, ...]) -> TensorValue:
    """The float64 number `target(*args)`, of sizes, numbers, and numbers made here."""
    if target is not torch.sym_float and target not in FUNCTIONS:
        raise CannotLower(f"{getattr(target, '__name__', target)} of sizes that differ from call to call")

    def formula(position: Position) -> Any:
        operands = [_number(argument) for argument in args]
        return operands[0] if target is torch.sym_float else ops.call(FUNCTIONS[target], *operands)

    return TensorValue((), torch.float64, None, formula=formula)


def _number(value: Any) -> Any:
    return value.load(()) if isinstance(value, TensorValue) else ops.constant(value, torch.float64)

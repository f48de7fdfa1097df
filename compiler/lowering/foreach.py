"""Operators on lists of tensors (`_foreach_add`), which optimisers are made of, as the operator on one tensor for each
of them: they are free to fuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten

#: Each tensor on its own, or with another of each list, or with one number for all.
OPERATORS = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor lgamma log log10 log1p log2 neg reciprocal
    round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc clone add sub mul div clamp_max clamp_min pow copy
    lerp""".split()


def _of_numbers_too(of_tensors: Any, of_numbers: Any) -> Callable[[Tensor, Any], Tensor]:
    return lambda x, y: of_tensors(x, y) if isinstance(y, Tensor) else of_numbers(x, y)


def _plus_scaled(op: Any) -> Callable[..., Tensor]:
    """addcmul and addcdiv: x + value * (a op b)."""

    def function(x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Tensor:
        if not x.dtype.is_floating_point:
            return NotImplemented  # type: ignore[no-any-return]
        term = op(a, b)
        return x + (term * value if isinstance(value, Tensor) or value != 1 else term)

    return function


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(aten, name) for name in OPERATORS},
    "maximum": _of_numbers_too(aten.maximum, aten.clamp_min),
    "minimum": _of_numbers_too(aten.minimum, aten.clamp_max),
    "addcmul": _plus_scaled(torch.mul),
    "addcdiv": _plus_scaled(torch.div),
}


def _decompose_foreach(name: str, function: Callable[..., Tensor]) -> None:
    packet = getattr(aten, f"_foreach_{name}", None)
    if packet is None:  # torch 2.11 has no `_foreach_clone`
        return

    @decomposes(packet)
    def of_lists(*operands: Any, alpha: Any = None, **scalars: Any) -> list[Tensor]:
        scalars.pop("memory_format", None)
        lists = [operand for operand in operands if isinstance(operand, list | tuple)]
        spread = [_one_for_each(operand, len(lists[0])) for operand in (*operands, *scalars.values())]
        keywords = {} if alpha is None else {"alpha": alpha}
        results = [function(*own, **keywords) for own in zip(*spread, strict=True)]
        is_covered = all(result is not NotImplemented for result in results)
        return results if is_covered else NotImplemented  # type: ignore[no-any-return]


def _one_for_each(operand: Any, count: int) -> Sequence[Any]:
    """The operand of each tensor; a table is a tensor with a number for each."""
    if isinstance(operand, list | tuple):
        return operand
    is_table = isinstance(operand, Tensor) and operand.dim() == 1
    return operand.unbind() if is_table else [operand] * count


for _name, _function in FUNCTIONS.items():
    _decompose_foreach(_name, _function)

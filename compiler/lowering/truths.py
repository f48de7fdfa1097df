"""Conditions on sizes, such as the `x.shape[0] > 4` that `torch.cond` may be given.

Where sizes are symbols the answer is known only in a call. It is a size like any other there, 0 or 1, that the wrapper
computes from its text.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from compiler.ir.size import Integer, Opaque, Size, hint, is_integer, size, spelt_out, symbols_of
from compiler.lowering.values import CannotLower

_TEXTS: dict[Any, str] = {
    operator.gt: "int({} > {})",
    operator.ge: "int({} >= {})",
    operator.lt: "int({} < {})",
    operator.le: "int({} <= {})",
    operator.eq: "int({} == {})",
    operator.ne: "int({} != {})",
    operator.and_: "int(({}) and ({}))",
    operator.or_: "int(({}) or ({}))",
    torch.sym_not: "int(not ({}))",
}


def truth(target: Any, args: tuple[Any, ...]) -> Integer:
    """1 where `target(*args)` holds in a call, else 0; `args` are sizes, numbers, and what this gave before."""
    if target not in _TEXTS or not all(map(is_integer, args)):
        raise CannotLower(f"{getattr(target, '__name__', target)} of sizes that differ from call to call")
    text = _TEXTS[target].format(*map(spelt_out, args))
    symbols = tuple(dict.fromkeys(symbol for value in args if isinstance(value, Size) for symbol in symbols_of(value)))
    return size(Opaque(text, symbols, int(target(*map(hint, args))), 0))

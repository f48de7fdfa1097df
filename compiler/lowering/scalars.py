"""Numbers that Python computes from sizes, such as the `n / 3` of a scale or the `n > 4` of a condition.

Where sizes are symbols such a number is known only in a call. Each becomes a formula in Python: of its operands'
formulas, in the order in which the program computes, so that it rounds as eager does. The wrapper evaluates it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import torch

from compiler.ir.formulas import Real, as_operand, integer
from compiler.ir.size import Integer, Quotient, Size, SizeAtom, Symbol, atoms_of, size, spelt_out, symbols_of
from compiler.lowering.values import CannotLower

_TEMPLATES: dict[Any, str] = {
    operator.add: "{} + {}",
    operator.sub: "{} - {}",
    operator.mul: "{} * {}",
    operator.truediv: "{} / {}",
    operator.floordiv: "{} // {}",
    operator.mod: "{} % {}",
    operator.pow: "{} ** {}",
    operator.neg: "-{}",
    operator.pos: "{}",
    operator.gt: "{} > {}",
    operator.ge: "{} >= {}",
    operator.lt: "{} < {}",
    operator.le: "{} <= {}",
    operator.eq: "{} == {}",
    operator.ne: "{} != {}",
    operator.and_: "{} and {}",
    operator.or_: "{} or {}",
    torch.sym_not: "not {}",
    torch.sym_ite: "{1} if {0} else {2}",
}

#: By the names that formulas call them by.
_FUNCTIONS: dict[Any, str] = {
    operator.abs: "abs",
    abs: "abs",
    round: "round",
    torch.sym_float: "float",
    # Of two numbers of different types torch gives a float, whichever it chooses.
    torch.sym_max: "max",
    torch.sym_min: "min",
    math.pow: "math.pow",
    **{
        function: f"math.{name}"
        for name in "sqrt cos cosh sin sinh tan tanh asin acos atan log2".split()
        for function in (getattr(torch, f"_sym_{name}", None), getattr(math, name))
        if function is not None
    },
}


def scalar(target: Any, args: tuple[Any, ...]) -> Real:
    """The float `target(*args)`, of sizes, numbers, and what this gave before. Raises CannotLower for a function that
    no formula calls."""
    text = _text(target, args)
    return Real(f"float({text})" if target in (torch.sym_max, torch.sym_min) else text, _symbols(args))


def truth(target: Any, args: tuple[Any, ...]) -> Integer:
    """1 where `target(*args)` holds in a call, else 0. Raises CannotLower likewise."""
    return integer(f"int({_text(target, args)})", _symbols(args), 0)


def is_true(value: Integer) -> Real | bool:
    """What `truth` gave, as Python's own True or False."""
    return bool(value) if isinstance(value, int) else Real(f"bool({formula(value)})", _symbols([value]))


def formula(value: Any) -> str:
    """A number, a size, or what `scalar` gave, as Python over the symbols."""
    if isinstance(value, Real):
        return value.text
    if isinstance(value, Size):
        atom = next(atoms_of(value))
        return atom.text if value == size(atom) and _is_of_symbols(atom) else spelt_out(value)
    if isinstance(value, bool | int | float):
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    raise CannotLower(f"{value} is not a number that sizes tell")


def _is_of_symbols(atom: SizeAtom) -> bool:
    """Whether its text holds no names of other formulas, which only a wrapper knows: that of a quotient may."""
    parts = (atom.numerator, atom.divisor) if isinstance(atom, Quotient) else ()
    return all(isinstance(inner, Symbol) for part in parts for inner in atoms_of(part))


def _text(target: Any, args: tuple[Any, ...]) -> str:
    if target in _TEMPLATES:
        return _TEMPLATES[target].format(*(as_operand(formula(argument)) for argument in args))
    if target not in _FUNCTIONS:
        raise CannotLower(f"there is no formula for {getattr(target, '__name__', target)} of sizes that are open")
    return f"{_FUNCTIONS[target]}({', '.join(map(formula, args))})"


def _symbols(args: Iterable[Any]) -> tuple[Symbol, ...]:
    found: dict[Symbol, None] = {}
    for argument in args:
        if isinstance(argument, Real):
            found |= dict.fromkeys(argument.symbols)
        elif isinstance(argument, Size):
            found |= dict.fromkeys(symbols_of(argument))
    return tuple(found)

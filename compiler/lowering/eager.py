"""Eager mode's tensors: the fake tensors of an FX graph, with sizes in the compiler's own form.

This is the one place that reads torch's symbolic sizes. A `torch.SymInt` holds a sympy expression and the environment
that knows what is guarded; it becomes a `compiler.ir.size.Size`, which asks nothing of that environment any more, so
lowering and scheduling never add a guard.

Where a guard proves that a size is a multiple of a number (`Mod(s0, 8) == 0`), the size is written as that multiple:
`8 * s0_over_8`, and what divides it comes out even. Where a guard says what number a formula is (`s0 // 5 == 1`, by
which eager broadcasts), it is that number; so are other simpler forms taken from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, reduce
from math import lcm
from operator import add, mul
from types import MappingProxyType
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, PythonMod, ToFloat, TruncToInt

from compiler.ir.formulas import integer
from compiler.ir.size import (
    Integer,
    Opaque,
    Quotient,
    Size,
    Symbol,
    Undecided,
    floor_quotient,
    hint,
    size,
    spelt_out,
    symbols_of,
)
from compiler.lowering.guarded_sizes import simpler_by_guards
from compiler.lowering.printed_formulas import python_text

#: Formulas that are whole numbers as all of their parts are.
_OF_INTEGERS = (sympy.Add, sympy.Mul, sympy.Pow, FloorDiv, CleanDiv, Mod, PythonMod, Max, Min)

#: Values, in the first call, of sizes that are known only when an operator has run, by their names in the graph.
FIRST_SIZES: ContextVar[Mapping[str, int]] = ContextVar("FIRST_SIZES", default=MappingProxyType({}))

#: The sizes that were described within a lowering, by their formulas and environments: guards do not change there.
_DESCRIBED: ContextVar[dict[tuple[Any, int], Integer] | None] = ContextVar("_DESCRIBED", default=None)

#: What such a size is taken for, where choices are made for speed, before any call was made.
GUESSED_SIZE = 4096


@contextmanager
def first_sizes(values: Mapping[str, int]) -> Iterator[None]:
    """Within a lowering: sizes that only a run tells are described with these values of the first call."""
    token, described = FIRST_SIZES.set(values), _DESCRIBED.set({})
    try:
        yield
    finally:
        FIRST_SIZES.reset(token)
        _DESCRIBED.reset(described)


class UnknownSize(Exception):
    """A size that no input tells: it is known only when an operator of the graph has run."""


@dataclass(frozen=True, eq=False)
class EagerTensor:
    """A tensor that eager mode would make, as torch's fake tensor of it says."""

    shape: tuple[Integer, ...]
    strides: tuple[Integer, ...]
    offset: Integer
    dtype: torch.dtype
    device: torch.device
    #: Whether eager reads each element with the other sign than it has in memory, as `z.conj().imag`.
    is_negated: bool = False

    def stride(self) -> tuple[Integer, ...]:
        return self.strides

    def storage_offset(self) -> Integer:
        return self.offset

    def dim(self) -> int:
        return len(self.shape)


def describe(value: Any) -> Any:
    """The `val` of an FX node with an `EagerTensor` for each tensor and a `Size` for each symbolic integer."""
    if isinstance(value, torch.Tensor):
        is_strided = value.layout == torch.strided
        return EagerTensor(
            tuple(map(size_of, value.shape)),
            _strides_of(value) if is_strided else (),
            size_of(value.storage_offset()) if is_strided else 0,
            value.dtype,
            value.device,
            value.is_neg(),
        )
    if isinstance(value, torch.SymInt):
        return size_of(value)
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    return value


def _strides_of(tensor: torch.Tensor) -> tuple[Integer, ...]:
    """Its strides by its own sizes. torch makes them of the larger of each size and 1: that matters only to a tensor
    without elements, in which no stride leads anywhere."""
    sizes: Iterable[int | torch.SymInt] = tensor.shape
    formulas = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
    shorter = {Max(1, formula): formula for formula in formulas}
    return tuple([
        stride if isinstance(stride, int) else _convert(stride.node.expr.xreplace(shorter), stride.node.shape_env)
        for stride in tensor.stride()
    ])  # fmt: skip


def size_of(value: int | torch.SymInt) -> Integer:
    """A size of a tensor in the compiler's form."""
    if isinstance(value, int):
        return value
    return _convert(value.node.expr, value.node.shape_env)


def _convert(expression: Any, environment: Any) -> Integer:
    described = _DESCRIBED.get()
    if described is None:
        return _converted(expression, environment)
    key = expression, id(environment)
    found = described.get(key)
    if found is None:
        found = described[key] = _converted(expression, environment)
    return found


def _converted(expression: Any, environment: Any) -> Integer:
    if isinstance(expression, sympy.Integer | int):
        return int(expression)
    simpler = simpler_by_guards(environment).get(expression)
    if simpler is not None:
        return _convert(simpler, environment)
    if isinstance(expression, sympy.Symbol):
        return _symbol(expression, environment)
    if isinstance(expression, TruncToInt):
        scaled = _scaled_by_whole(expression.args[0], environment)
        return formula_of(expression, environment) if scaled is None else scaled
    if not isinstance(expression, _OF_INTEGERS):
        return formula_of(expression, environment)
    parts = [_convert(part, environment) for part in expression.args]
    if isinstance(expression, sympy.Add):
        return reduce(add, parts)
    if isinstance(expression, sympy.Mul):
        return reduce(mul, parts)
    if isinstance(expression, sympy.Pow) and isinstance(parts[1], int) and parts[1] > 0:
        return reduce(mul, [parts[0]] * parts[1])
    if isinstance(expression, FloorDiv | CleanDiv):
        return floor_quotient(parts[0], parts[1])
    if isinstance(expression, Mod | PythonMod):
        return parts[0] % parts[1]
    if isinstance(expression, Max | Min):
        return reduce(partial(_extreme, "max" if isinstance(expression, Max) else "min"), parts)
    return formula_of(expression, environment)


def _scaled_by_whole(expression: Any, environment: Any) -> Integer | None:
    """A size times a float that is a whole number, as an image has that is scaled by it; None of any other formula."""
    factor, number = expression.args if isinstance(expression, sympy.Mul) else (sympy.Float(1), expression)
    if not isinstance(factor, sympy.Float) or not isinstance(number, ToFloat) or not float(factor).is_integer():
        return None
    return _convert(number.args[0], environment) * int(factor)


def _extreme(name: str, a: Integer, b: Integer) -> Integer:
    for one, other in ((a, b), (b, a)):  # that one is at least the other may be known, and not whether it is larger
        with suppress(Undecided):
            return one if (one >= other) == (name == "max") else other
    choose = max if name == "max" else min
    symbols = tuple(dict.fromkeys([*symbols_of(a), *symbols_of(b)]))
    return size(Opaque(f"{name}({spelt_out(a)}, {spelt_out(b)})", symbols, choose(hint(a), hint(b)), None))


def _symbol(symbol: Any, environment: Any) -> Integer:
    """The symbol, as a multiple of what a guard proves to divide it."""
    bounds = environment.var_to_range.get(symbol)
    least = None if bounds is None or not bounds.lower.is_Integer else int(bounds.lower)
    values = environment.backed_var_to_val if hasattr(environment, "backed_var_to_val") else environment.var_to_val
    if symbol not in values:
        return size(Symbol(str(symbol), FIRST_SIZES.get().get(str(symbol), GUESSED_SIZE), least, is_late=True))
    # The lengths of a nested tensor's rows count as one size. It has no number, and no memory is laid out by it.
    number = int(values[symbol]) if values[symbol].is_number else GUESSED_SIZE
    whole = size(Symbol(str(symbol), number, least))
    facts = (fact.args for fact in environment.divisible)
    divisor = lcm(*(int(by) for of, by in facts if of == symbol and isinstance(by, sympy.Integer)))
    return whole if divisor == 1 else size(Quotient(whole, divisor)) * divisor


def formula_of(expression: Any, environment: Any) -> Integer:
    """The size of a formula that is no polynomial, as Python's text of it, or what guards make of that. Raises
    NotImplementedError where there is no text."""
    # An input whose size a guard fixes tells no symbol, so a formula must not name that.
    simpler = expression.xreplace(simpler_by_guards(environment))
    if simpler != expression:
        return _convert(simpler, environment)
    symbols = sorted(expression.free_symbols, key=str)
    known = [next(symbols_of(_symbol(symbol, environment))) for symbol in symbols]
    bounds = environment.bound_sympy(expression)
    lower = int(bounds.lower) if bounds.lower.is_Integer else None
    return integer(python_text(expression), tuple(known), lower)


def symbol_in(value: Integer) -> Symbol | None:
    """The symbol that a size is, or is written as a multiple of, where it is nothing else."""
    if not isinstance(value, Size) or len(value.terms) != 1 or len(value.terms[0][0]) != 1:
        return None
    (atom,), factor = value.terms[0]
    if isinstance(atom, Symbol) and factor == 1:
        return atom
    if isinstance(atom, Quotient) and atom.divisor == factor:
        return symbol_in(atom.numerator)
    return None


def eager_tensors(value: Any) -> list[EagerTensor]:
    """The tensors in the value of an FX node."""
    if isinstance(value, EagerTensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in eager_tensors(item)]
    return []

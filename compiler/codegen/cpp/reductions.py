"""Accumulators: the variables of a reduction, and how values and partial results are added to them.

sum            total                    total += x
prod           product                  product *= x, of float32 in double
max of floats  largest, largest_is_nan  the vector loop takes the larger number and notes NaN beside it
argmax         position                 the value and its position as one number (see `positions.h`), or else
               position, position_best  the position, and the value that stands there, found one by one
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from compiler.codegen.cpp.ops import literal, value_type
from compiler.ir.ops import identity_of
from compiler.schedule.program.program import Statement


@dataclass(frozen=True)
class Variable:
    """One variable that gathers: its C type and name, what it starts with, and OpenMP's name of what joins two of it,
    none where they take positions. `nodes` are those that it is for."""

    ctype: str
    name: str
    start: str
    operator: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Accumulator:
    """The reduction `statement` of values of dtype `dtype`. `is_row` says that one variable takes in many lanes of a
    vector loop; otherwise each lane has its own, and NaN needs no variable of its own. `is_one_number`: a value
    and its position are one."""

    statement: Statement
    dtype: torch.dtype
    is_row: bool
    is_one_number: bool = False

    @property
    def kind(self) -> str:
        return str(self.statement.value)

    @property
    def name(self) -> str:
        return self.statement.target

    @property
    def is_positional(self) -> bool:
        """Whether it holds a position beside a value."""
        return self.kind.startswith("arg") and not self.is_one_number

    @property
    def notes_nan(self) -> bool:
        return self.is_row and self.kind in ("min", "max") and self.dtype.is_floating_point

    @property
    def held(self) -> torch.dtype:
        """The dtype that it gathers in: a product of float32 may be too large, or too small, on its way."""
        is_product = self.kind == "prod" and self.dtype == torch.float32
        return torch.float64 if is_product else self.dtype

    def variables(self, suffix: str = "") -> tuple[Variable, ...]:
        """What it gathers in; `suffix` completes the names."""
        ctype, name, nodes = value_type(self.held), f"{self.name}{suffix}", self.statement.nodes
        if self.is_positional:
            worst = literal(identity_of(self.kind.removeprefix("arg"), self.dtype), self.dtype)
            best = Variable(ctype, f"{self.name}_best{suffix}", worst, "", nodes)
            return Variable("int64_t", name, "INT64_MAX", "", nodes), best
        if self.is_one_number:
            return (Variable("int64_t", name, "INT64_MIN", "max", nodes),)
        operators = {"sum": "+", "prod": "*", "any": "|", "all": "&"}
        if self.dtype == torch.bool:
            operators |= {"min": "&", "max": "|"}
        operator, identity = operators.get(self.kind, self.kind), identity_of(self.kind, self.held)
        # GCC 12 makes no vectors of a loop that gathers bools.
        is_bit = self.kind in ("any", "all")
        start = str(int(identity)) if is_bit else literal(identity, self.held)
        value = Variable("int" if is_bit else ctype, name, start, operator, nodes)
        nan = Variable("int", f"{self.name}_is_nan{suffix}", "0", "|", nodes)
        return (value, nan) if self.notes_nan else (value,)

    def take(self, operands: list[str], suffix: str = "", element: str = "") -> list[str]:
        """Statements that take a value in; `suffix` and `element` complete the variables' names."""
        into = [f"{one.name}{element}" for one in self.variables(suffix)]
        value, kind = operands[0], self.kind
        if self.is_positional:
            test = "is_above" if kind == "argmax" else "is_below"
            better = f"fs::{test}({value}, {operands[1]}, {into[1]}, {into[0]})"
            return [f"if ({better}) {into[1]} = {value}, {into[0]} = {operands[1]};"]
        if self.is_one_number:
            value = value if kind == "argmax" else f"fs::reversed({value})"
            return [f"{into[0]} = fs::maximum({into[0]}, fs::with_position({value}, {operands[1]}));"]
        if kind in ("any", "all") or (self.dtype == torch.bool and kind in ("min", "max")):
            return [f"{into[0]} {'|' if kind in ('any', 'max') else '&'}= {value};"]
        return joined(kind, into, value, self.notes_nan)

    def combine(self, suffix: str, element: str, other_suffix: str, other_element: str) -> list[str]:
        """Statements that take the partial result of later elements in."""
        other = [f"{one.name}{other_element}" for one in self.variables(other_suffix)]
        if self.is_positional:
            return self.take([other[1], other[0]], suffix, element)
        if self.is_one_number:
            into = f"{self.name}{suffix}{element}"
            return [f"{into} = fs::maximum({into}, {other[0]});"]
        if self.notes_nan:
            return [self.take([other[0]], suffix, element)[0], f"{self.name}_is_nan{suffix}{element} |= {other[1]};"]
        return self.take([other[0]], suffix, element)

    def finish(self) -> list[str]:
        return [f"if ({self.name}_is_nan) {self.name} = NAN;"] if self.notes_nan else []

    def result(self, element: str = "") -> str:
        """The text of what was found, once all is taken in."""
        name = f"{self.name}{element}"
        if self.is_one_number:
            return f"fs::position({name})"
        return name if self.held == self.dtype else f"{value_type(self.dtype)}({name})"


def variables_of(accumulators: Iterable[Accumulator], suffix: str = "") -> list[Variable]:
    return [one for accumulator in accumulators for one in accumulator.variables(suffix)]


def joined(kind: str, into: list[str], value: str, notes_nan: bool) -> list[str]:
    """Statements by which a sum, a product or an extreme takes a value in."""
    if kind in ("sum", "prod"):
        return [f"{into[0]} {'+' if kind == 'sum' else '*'}= {value};"]
    if notes_nan:
        sign = ">" if kind == "max" else "<"
        return [f"{into[0]} = {value} {sign} {into[0]} ? {value} : {into[0]};", f"{into[1]} |= {value} != {value};"]
    return [f"{into[0]} = fs::{kind}imum({into[0]}, {value});"]


def fits_one_number(dtype: torch.dtype, position: Statement) -> bool:
    """Whether values of a dtype and their positions have 32 bits each at most."""
    if dtype.itemsize > 4 or position.op != "index_value" or position.index is None:
        return False
    low, high = position.index.bounds
    return isinstance(low, int) and isinstance(high, int) and 0 <= low and high < 2**32

"""Scans: the variables of a running value, and how the next element is added to it.

sum            total_so_far                    total_so_far += x;  total = total_so_far
argmax         at_so_far, at_so_far_best       the position, and the value that stands there

Sums, products and exponentials of float32 run in double, as ATen's do on a CPU: a long row of roundings would show.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compiler.codegen.cpp.ops import value_type
from compiler.codegen.cpp.reductions import Field, highest, joined, lowest, zero_or_one
from compiler.schedule.program.program import Statement


@dataclass(frozen=True)
class RunningValue:
    """The scan `statement` of values of dtype `dtype`."""

    statement: Statement
    dtype: torch.dtype

    @property
    def kind(self) -> str:
        return str(self.statement.value)

    @property
    def name(self) -> str:
        return f"{self.statement.target}_so_far"

    @property
    def held(self) -> torch.dtype:
        """The dtype that the value runs in."""
        is_rounded = self.kind in ("sum", "prod", "logsumexp") and self.dtype.is_floating_point
        return torch.float64 if is_rounded else self.dtype

    @property
    def fields(self) -> tuple[Field, ...]:
        """Before the first element."""
        if self.kind in ("sum", "prod"):
            return (Field("", value_type(self.held), zero_or_one(self.kind, self.held)),)
        worst = highest(self.held) if self.kind.endswith("min") else lowest(self.held)
        if self.kind.startswith("arg"):
            return Field("", "int64_t", "0"), Field("_best", value_type(self.held), worst)
        return (Field("", value_type(self.held), worst),)

    def take(self, operands: list[str], place: str = "") -> list[str]:
        """Statements that take the next element in; `place` completes the variables' names."""
        into = [f"{self.name}{field.suffix}{place}" for field in self.fields]
        value = operands[0]
        if self.kind == "logsumexp":
            return [f"{into[0]} = fs::log_of_sum({into[0]}, double({value}));"]
        if self.kind.startswith("arg"):
            # The latest one among equals, and the latest NaN.
            sign = ">=" if self.kind == "argmax" else "<="
            test = f"{value} != {value} || {value} {sign} {into[1]}"
            return [f"if ({test}) {into[1]} = {value}, {into[0]} = {operands[1]};"]
        return joined(self.kind, into, value, notes_nan=False)

    def result(self, place: str = "") -> str:
        text = f"{self.name}{place}"
        return text if self.held == self.dtype else f"{value_type(self.statement.dtype)}({text})"

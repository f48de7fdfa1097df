"""Scans: the variables of a running value, and how the next element is added to it.

sum            total_so_far                    total_so_far += x;  total = total_so_far
max of floats  most_so_far, most_so_far_is_nan in lanes: the larger number, and NaN beside it

Along a row that is contiguous a vector takes the next elements at once (`is_in_lanes`), by OpenMP's `scan`:

    #pragma omp simd reduction(inscan, +: total_so_far)
    for r ...:  total_so_far += x_ptr[r];
                #pragma omp scan inclusive(total_so_far)
                total_ptr[r] = total_so_far;

Sums and products of float32 run in double, as ATen's do on a CPU: a long row of roundings would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from compiler.codegen.cpp.ops import literal, value_type
from compiler.codegen.cpp.reductions import Field, highest, joined, lowest, zero_or_one
from compiler.schedule.program.program import Statement


@dataclass(frozen=True)
class RunningValue:
    """The scan `statement` of values of dtype `dtype`."""

    statement: Statement
    dtype: torch.dtype
    is_in_lanes: bool = False

    @property
    def kind(self) -> str:
        return str(self.statement.value)

    @property
    def name(self) -> str:
        return f"{self.statement.target}_so_far"

    @property
    def held(self) -> torch.dtype:
        """The dtype that the value runs in."""
        is_rounded = self.kind in ("sum", "prod") and self.dtype.is_floating_point
        return torch.float64 if is_rounded else self.dtype

    @property
    def fields(self) -> tuple[Field, ...]:
        """Before the first element."""
        if self.kind in ("sum", "prod"):
            return (Field("", value_type(self.held), zero_or_one(self.kind, self.held)),)
        worst = highest(self.held) if self.kind == "min" else lowest(self.held)
        value = Field("", value_type(self.held), worst)
        return (value, Field("_is_nan", "int", "0")) if self.notes_nan else (value,)

    @property
    def notes_nan(self) -> bool:
        """What OpenMP takes from lane to lane is the larger number, whatever NaN is."""
        return self.is_in_lanes and self.kind in ("min", "max") and self.held.is_floating_point

    @property
    def operators(self) -> tuple[str, ...]:
        """By which OpenMP joins each of the variables in lanes; none where it cannot."""
        first = {"sum": "+", "prod": "*", "min": "min", "max": "max"}.get(self.kind)
        if first is None or self.held == torch.bool:
            return ()
        return (first, "|") if self.notes_nan else (first,)

    def take(self, operand: str, place: str = "") -> list[str]:
        """Statements that take the next element in; `place` completes the variables' names."""
        into = [f"{self.name}{field.suffix}{place}" for field in self.fields]
        return joined(self.kind, into, operand, self.notes_nan)

    def result(self, place: str = "") -> str:
        text, wanted = f"{self.name}{place}", self.statement.dtype
        if self.notes_nan:
            return f"{text}_is_nan ? {literal(math.nan, wanted)} : {text}"
        return text if self.held == self.dtype else f"{value_type(wanted)}({text})"

"""Sums relative to another result of the row (see `schedule/program/single_pass.py`), chunk by chunk.

    for each chunk:  base = max x;  sum = sum of exp(x - base)      x is in the first-level cache
                     largest, total = join_exponentials(largest, total, base, sum)
    for each chunk:  base = (sum x) / n;  rest = sum of x - base;  sum = sum of (x - base)^2
                     base and sum put right by the rest, which is what roundings left
                     count, mean, total = join_squares(count, mean, total, n, base, sum)

Two short vector loops over a chunk, so that memory is read once, and no loop carries more than a maximum or a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from compiler.codegen.cpp.ops import literal, value_type
from compiler.codegen.cpp.reductions import Accumulator, Field
from compiler.schedule.program.program import Statement


@dataclass(frozen=True)
class RelativeSum:
    """The reduction `statement`, of values of dtype `dtype`. `first` is what the first loop over a chunk finds, `base`
    what the sum of the second loop is relative to: the largest value, or the mean."""

    statement: Statement
    dtype: torch.dtype
    is_row: bool

    @property
    def name(self) -> str:
        return self.statement.target

    @property
    def is_exponential(self) -> bool:
        return self.statement.value == "exponentials"

    @property
    def ctype(self) -> str:
        return value_type(self.dtype)

    @property
    def first(self) -> Accumulator:
        kind = "max" if self.is_exponential else "sum"
        return Accumulator(
            replace(self.statement, target=f"{self.name}_first", value=kind), self.dtype, self.is_row
        )  # fmt: skip

    @property
    def fields(self) -> tuple[Field, ...]:
        zero = literal(0, self.dtype)
        if self.is_exponential:
            return Field("_largest", self.ctype, self.least), Field("_total", self.ctype, zero)
        return tuple(Field(suffix, self.ctype, zero) for suffix in ("_count", "_mean", "_total"))

    @property
    def least(self) -> str:
        return literal(torch.finfo(self.dtype).min, self.dtype)

    def base(self, first: str, count: str) -> str:
        """What the sum of a chunk of `count` values is relative to, where its first loop has found `first`."""
        if self.is_exponential:
            return f"fs::maximum({first}, {self.least})"
        return f"{first} / {self.ctype}({count})"

    @property
    def sums(self) -> tuple[str, ...]:
        """What the second loop adds up."""
        return (f"{self.name}_sum",) if self.is_exponential else (f"{self.name}_rest", f"{self.name}_sum")

    def terms(self, value: str, base: str) -> tuple[str, ...]:
        """What one value adds to each of the sums."""
        distance = f"{value} - {base}"
        return (f"fs::exp({distance})",) if self.is_exponential else (distance, f"fs::square({distance})")

    def put_right(self, place: str, count: str) -> list[str]:
        """The statements that end a chunk of `count` values."""
        if self.is_exponential:
            return []
        base, rest, total = (f"{self.name}_{what}_here{place}" for what in ("base", "rest", "sum"))
        share = f"{rest} / {self.ctype}({count})"
        return [f"{total} -= {rest} * ({share});", f"{base} += {share};"]

    def join(self, place: str, base: str, total: str, count: str) -> str:
        """The statement that takes a chunk in; `place` completes the names of the variables."""
        whole = ", ".join(f"{self.name}{field.suffix}{place}" for field in self.fields)
        if self.is_exponential:
            return f"fs::join_exponentials({whole}, {base}, {total});"
        return f"fs::join_squares({whole}, {self.ctype}({count}), {base}, {total});"

"""Scans: how each kind is printed within a block, and from block to block of a loop.

    looped      for each block:  cumsum = carry + tl.cumsum(x, 0);  carry = the last lane of cumsum
    persistent  cumsum = tl.cumsum(x, 0)

Lanes beyond the end of a row stand behind all others, so they need no neutral element.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from compiler.codegen.triton.values.ops import DTYPES
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.schedule.program.program import Statement
from compiler.schedule.tiles.plan import Plan

HELPERS: dict[str, str] = {
    "latest_larger_at": '''@triton.jit
def latest_larger_at(a, a_at, b, b_at):
    """The larger value and its position; NaN wins, and among equals the higher position."""
    a_is_nan = a != a
    b_is_nan = b != b
    is_tie = (a == b) | (a_is_nan & b_is_nan)
    takes_a = (a > b) | (a_is_nan & (b == b)) | (is_tie & (a_at > b_at))
    return tl.where(takes_a, a, b), tl.where(takes_a, a_at, b_at)
''',
    "latest_smaller_at": '''@triton.jit
def latest_smaller_at(a, a_at, b, b_at):
    """The smaller value and its position; NaN wins, and among equals the higher position."""
    a_is_nan = a != a
    b_is_nan = b != b
    is_tie = (a == b) | (a_is_nan & b_is_nan)
    takes_a = (a < b) | (a_is_nan & (b == b)) | (is_tie & (a_at > b_at))
    return tl.where(takes_a, a, b), tl.where(takes_a, a_at, b_at)
''',
    "log_of_sum": '''@triton.jit
def log_of_sum(a, b):
    """log(exp(a) + exp(b)) without overflow; two infinities of one sign stay what they are."""
    low = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    high = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    is_infinite = (low == high) & (tl.abs(low) == float("inf"))
    return tl.where(is_infinite, low, high + libdevice.log1p(libdevice.exp(low - high)))
''',
}

_COMBINE = {
    "prod": "product_of_two",
    "max": "maximum_of_two",
    "min": "minimum_of_two",
    "argmax": "latest_larger_at",
    "argmin": "latest_smaller_at",
    "logsumexp": "log_of_sum",
}


@dataclass(frozen=True)
class Scan:
    """One kind of scan over values of `dtype`."""

    kind: str
    dtype: torch.dtype

    @property
    def is_position(self) -> bool:
        """Whether it carries a position beside the value."""
        return self.kind.startswith("arg")

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the variables that it carries are called: of a position, the value and the position."""
        return ("_best", "") if self.is_position else ("",)

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        return (self.dtype, torch.int64) if self.is_position else (self.dtype,)

    @property
    def helper(self) -> str | None:
        """The function that joins two results, where no operator of Triton does."""
        return _COMBINE.get(self.kind)

    @property
    def identities(self) -> tuple[str, ...]:
        """What a row starts from."""
        if self.kind in ("sum", "prod"):
            return ("0" if self.kind == "sum" else "1",)
        is_least = not self.kind.endswith("min")
        if self.dtype.is_floating_point:
            value = 'float("-inf")' if is_least else 'float("inf")'
        else:
            value = str(torch.iinfo(self.dtype).min if is_least else torch.iinfo(self.dtype).max)
        return (value, "-1") if self.is_position else (value,)

    def start(self, shape: str) -> list[str]:
        """The values that the first block joins to, one for each variable."""
        return [f"tl.full({shape}, {i}, {DTYPES[d]})" for i, d in zip(self.identities, self.dtypes, strict=True)]

    def block(self, values: list[str], axis: int) -> str:
        """The scan of a block along a tile axis."""
        if self.kind == "sum":
            return f"tl.cumsum({values[0]}, {axis})"
        operand = f"({', '.join(values)})" if self.is_position else values[0]
        return f"tl.associative_scan({operand}, {axis}, {self.helper})"

    def total(self, values: list[str]) -> str:
        """All lanes of a vector joined, in an order that is always the same."""
        if self.kind == "sum":
            return f"tl.sum({values[0]}, 0)"
        operand = f"({', '.join(values)})" if self.is_position else values[0]
        return f"tl.reduce({operand}, 0, {self.helper})"

    def join(self, left: list[str], right: list[str]) -> str:
        """The results of what stands before and of a block as one."""
        if self.kind == "sum":
            return f"{left[0]} + {right[0]}"
        return f"{left[0]} * {right[0]}" if self.kind == "prod" else f"{self.helper}({', '.join([*left, *right])})"


class Scans:
    """Prints the scans of one plan."""

    def __init__(self, plan: Plan, printer: StatementPrinter, writer: Writer) -> None:
        self.printer = printer
        self.writer = writer
        self.axis = len(plan.vectors) - 1

    def kind_of(self, statement: Statement) -> Scan:
        """The rules of its kind."""
        return Scan(str(statement.value), self.printer.by_number[statement.operands[0]].dtype)

    @staticmethod
    def names(statement: Statement, scan: Scan) -> list[str]:
        """The variables of its results."""
        return [f"{statement.target}{suffix}" for suffix in scan.suffixes]

    def start(self, statements: Iterable[Statement]) -> None:
        """What each scan carries from block to block, and which lane it is taken from."""
        scans = list(statements)
        if any(self.kind_of(statement).kind != "sum" for statement in scans):
            self.last_lane()
        for statement in scans:
            scan = self.kind_of(statement)
            starts = scan.start(self.printer.shape(self.printer.all_axes - {"r"}))
            for suffix, start in zip(scan.suffixes, starts, strict=True):
                self.writer.line(f"{statement.target}_carry{suffix} = {start}", statement.nodes)

    def last_lane(self) -> None:
        """Which lane has the result of a whole block."""
        spread = "[None, :]" if self.axis else ""
        self.writer.line(f"last_lane = tl.arange(0, RBLOCK){spread} == RBLOCK - 1")

    def take(self, statement: Statement, is_looped: bool) -> None:
        """The scan of a block; in a loop, of all blocks so far."""
        scan, values = self.kind_of(statement), self.values(statement)
        names = self.names(statement, scan)
        self.block(statement, scan, values)
        if not is_looped:
            return
        carries = [f"{statement.target}_carry{suffix}" for suffix in scan.suffixes]
        self.writer.line(f"{', '.join(names)} = {scan.join(carries, names)}", statement.nodes)
        if scan.kind == "sum":
            # The sum of a block does not wait for its scan.
            total = f"tl.sum({values[0]}, {self.axis}, keep_dims=True)"
            self.writer.line(f"{carries[0]} += {total}", statement.nodes)
            return
        for carry, name in zip(carries, names, strict=True):
            last = f"tl.sum(tl.where(last_lane, {name}, 0), {self.axis}, keep_dims=True)"
            self.writer.line(f"{carry} = {last}", statement.nodes)

    def values(self, statement: Statement) -> list[str]:
        """What it goes over, in the shape of the whole tile."""
        shape, found = self.printer.shape(self.printer.all_axes), []
        for number in statement.operands:
            text = self.printer.operand(number).block
            is_whole = self.printer.axes_of[number] == self.printer.all_axes
            found.append(text if is_whole else f"tl.broadcast_to({text}, {shape})")
        return found

    def block(self, statement: Statement, scan: Scan, values: list[str]) -> None:
        names = ", ".join(self.names(statement, scan))
        self.writer.line(f"{names} = {scan.block(values, self.axis)}", statement.nodes)

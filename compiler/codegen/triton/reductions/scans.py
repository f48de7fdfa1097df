"""Scans: how each kind is printed within a block, and from block to block of a loop.

    looped      for each block:  cumsum = carry + tl.cumsum(x, 0);  carry = the last lane of cumsum
    persistent  cumsum = tl.cumsum(x, 0)

Lanes beyond the end of a row stand behind all others, so they need no neutral element.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.codegen.triton.values.ops import DTYPES, Reduction
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.schedule.program.program import Statement
from compiler.schedule.tiles.plan import Plan

_COMBINE = {"prod": "product_of_two", "max": "maximum_of_two", "min": "minimum_of_two"}


class Scan(Reduction):
    """One kind of scan, which joins values as a reduction does."""

    @property
    def helper(self) -> str | None:
        return _COMBINE.get(self.kind)

    @property
    def identity(self) -> str:
        """What a row starts from."""
        return {"sum": "0", "prod": "1"}.get(self.kind) or super().identity

    def block(self, value: str, axis: int) -> str:
        """The scan of a block along a tile axis."""
        if self.kind == "sum":
            return f"tl.cumsum({value}, {axis})"
        return f"tl.associative_scan({value}, {axis}, {self.helper})"


class Scans:
    """Prints the scans of one plan."""

    def __init__(self, plan: Plan, printer: StatementPrinter, writer: Writer) -> None:
        self.printer = printer
        self.writer = writer
        self.axis = len(plan.vectors) - 1

    def kind_of(self, statement: Statement) -> Scan:
        """The rules of its kind."""
        return Scan(str(statement.value), self.printer.by_number[statement.operands[0]].dtype)

    def start(self, statements: Iterable[Statement]) -> None:
        """What each scan carries from block to block, and which lane it is taken from."""
        scans = list(statements)
        if any(self.kind_of(statement).kind != "sum" for statement in scans):
            self.last_lane()
        for statement in scans:
            scan, shape = self.kind_of(statement), self.printer.shape(self.printer.all_axes - {"r"})
            start = f"tl.full({shape}, {scan.identity}, {DTYPES[scan.dtype]})"
            self.writer.line(f"{statement.target}_carry = {start}", statement.nodes)

    def last_lane(self) -> None:
        """Which lane has the result of a whole block."""
        spread = "[None, :]" if self.axis else ""
        self.writer.line(f"last_lane = tl.arange(0, RBLOCK){spread} == RBLOCK - 1")

    def take(self, statement: Statement, is_looped: bool) -> None:
        """The scan of a block; in a loop, of all blocks so far."""
        scan, value, name = self.kind_of(statement), self.value(statement), statement.target
        self.block(statement, scan, value)
        if not is_looped:
            return
        carry = f"{name}_carry"
        self.writer.line(f"{name} = {scan.join(carry, name)}", statement.nodes)
        # The sum of a block does not wait for its scan.
        of_block = value if scan.kind == "sum" else f"tl.where(last_lane, {name}, 0)"
        becomes = "+=" if scan.kind == "sum" else "="
        self.writer.line(f"{carry} {becomes} tl.sum({of_block}, {self.axis}, keep_dims=True)", statement.nodes)

    def value(self, statement: Statement) -> str:
        """What it goes over, in the shape of the whole tile."""
        (number,) = statement.operands
        return self.printer.spread(
            self.printer.operand(number).block, self.printer.axes_of[number], self.printer.all_axes
        )

    def block(self, statement: Statement, scan: Scan, value: str) -> None:
        self.writer.line(f"{statement.target} = {scan.block(value, self.axis)}", statement.nodes)

"""Print scans: of one block, and with a carry from block to block of a loop."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.codegen.triton.reductions.scans import Scan
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.schedule.program.program import Statement
from compiler.schedule.tiles.plan import Plan


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

"""Print ordinary reductions: of a tile in registers, or in a loop with an accumulator for each lane.

    loop      acc = start;  for each block: acc = acc + x;   total = sum of acc over the lanes
    at once   total = sum of x over the lanes

A position (`argmax`) is the first position where the extreme is, which is found with it where it is wanted too.
"""

from __future__ import annotations

import torch

from compiler.codegen.triton.values.ops import DTYPES, Reduction, reduction_of
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.schedule.program.program import Statement


class Reductions:
    """Prints the ordinary reductions of one plan."""

    def __init__(self, printer: StatementPrinter, writer: Writer) -> None:
        self.vectors = printer.vectors
        self.printer = printer
        self.writer = writer

    def kind_of(self, statement: Statement) -> Reduction:
        """The rules of its kind."""
        return reduction_of(str(statement.value), self.printer.by_number[statement.operands[0]].dtype)

    def lanes_of(self, statement: Statement, is_whole: bool) -> list[str]:
        """The operands of a reduction with lanes outside of r filled by its identity; `is_whole` asks for the shape of
        the whole tile."""
        operands = zip(statement.operands, self.values(statement), strict=True)
        return [self._filled_lanes(number, fill, is_whole) for number, (_, _, fill) in operands]

    def _filled_lanes(self, number: int, fill: str, is_whole: bool) -> str:
        text = self.printer.operand(number).reduced
        axes = self.printer.axes_of[number]
        is_filled = fill in ("0", "0.0") and self._is_zero_outside(number)
        if self.printer.masks(frozenset("r")) and not is_filled:
            text = f"tl.where(r_mask, {text}, {fill})"
            axes = axes | {"r"}
        return self.printer.spread(text, axes, self.printer.all_axes) if is_whole else text

    def _is_zero_outside(self, number: int) -> bool:
        """Whether lanes outside of r have zeros, as loads give them that do not go on into the gap after a row."""
        statement, axes = self.printer.by_number[number], self.printer.axes_of[number]
        return statement.op == "load" and "r_mask" in self.printer.load_masks(statement, axes)

    def filled(self, statement: Statement, fill: str) -> str:
        return self._filled_lanes(statement.operands[0], fill, is_whole=False)

    def reduce_at_once(self, statement: Statement) -> None:
        """The result of a tile that holds all of r."""
        lanes = self.lanes_of(statement, is_whole=True)
        if self.kind_of(statement).is_position:
            self.writer.line(f"{statement.target}_values = {lanes[0]}", statement.nodes)
            lanes[0] = f"{statement.target}_values"
        self.emit_collapsed(statement, lanes)

    def start(self, statement: Statement) -> None:
        """The accumulators before a loop."""
        shape = self.printer.shape(self.printer.all_axes)
        for name, dtype, nothing in self.values(statement):
            self.writer.line(f"{name} = tl.full({shape}, {nothing}, {DTYPES[dtype]})", statement.nodes)

    def take(self, statement: Statement) -> None:
        """One more block of a loop."""
        reduction = self.kind_of(statement)
        lanes, name = self.lanes_of(statement, is_whole=False), f"{statement.target}_acc"
        if reduction.is_position:
            joined = f"{reduction.helper}({name}, {name}_at, {', '.join(lanes)})"
            self.writer.line(f"{name}, {name}_at = {joined}", statement.nodes)
        else:
            self.writer.line(reduction.add(name, lanes[0]), statement.nodes)

    def collapse(self, statement: Statement, first: str, last: str) -> None:
        """The result after a loop from `first` to `last`."""
        self.emit_collapsed(statement, [name for name, _, _ in self.values(statement)])

    def values(self, statement: Statement) -> list[tuple[str, torch.dtype, str]]:
        """What a program has of its part: variables, their dtypes, and the values of no elements."""
        reduction, name = self.kind_of(statement), f"{statement.target}_acc"
        found = [(name, reduction.dtype, reduction.identity)]
        if reduction.is_position:
            dtype = self._position_dtype(statement)
            found.append((f"{name}_at", dtype, str(torch.iinfo(dtype).max)))
        return found

    def _position_dtype(self, statement: Statement) -> torch.dtype:
        return self.printer.by_number[statement.operands[1]].dtype

    def leave(self, statement: Statement, first: str, last: str) -> None:
        """These values after a loop from `first` to `last`."""
        self.leave_of(statement, [name for name, _, _ in self.values(statement)])

    def leave_of(self, statement: Statement, lanes: list[str]) -> None:
        """The same of all lanes of a tile."""
        reduction, name, axis = self.kind_of(statement), f"{statement.target}_acc", len(self.vectors) - 1
        spread = "[:, None]" if axis else ""
        if reduction.is_position:
            call = reduction.collapse(f"({lanes[0]}, {lanes[1]})", axis)
            self.writer.line(f"{name}, {name}_at = {call}", statement.nodes)
            if spread:
                self.writer.line(f"{name}, {name}_at = {name}{spread}, {name}_at{spread}", statement.nodes)
        else:
            self.writer.line(f"{name} = {reduction.collapse(lanes[0], axis)}{spread}", statement.nodes)

    def join_parts(self, statement: Statement, parts: list[str], chunk: str, length: str) -> None:
        """The result of all parts, whose values are loaded already."""
        self.emit_collapsed(statement, parts)

    def emit_collapsed(self, statement: Statement, lanes: list[str]) -> None:
        """The lines that make the reduction's result of a tile."""
        reduction = self.kind_of(statement)
        if reduction.is_position:
            self._emit_position(statement, reduction, lanes)
            return
        axis = len(self.vectors) - 1
        text = reduction.collapse(lanes[0], axis) + ("[:, None]" if axis else "")
        if statement.dtype == torch.bool:
            text = f"{text} != 0"
        self.writer.line(f"{statement.target} = {text}", statement.nodes)

    def _emit_position(self, statement: Statement, reduction: Reduction, lanes: list[str]) -> None:
        """The extreme of a tile, then the first position where it is: both are cheaper than pairs that are joined."""
        values, positions = lanes
        axis, dtype = len(self.vectors) - 1, self._position_dtype(statement)
        spread, last = "[:, None]" if axis else "", torch.iinfo(dtype).max
        best = f"{statement.target}_best"
        extreme = reduction_of(reduction.kind.removeprefix("arg"), reduction.dtype)
        self.writer.line(f"{best} = {extreme.collapse(values, axis)}{spread}", statement.nodes)
        widened = f".to({DTYPES[statement.dtype]})" if dtype != statement.dtype else ""
        call = f"first_index_of({best}, {values}, {positions}, {last}, {axis}){spread}{widened}"
        self.writer.line(f"{statement.target} = {call}", statement.nodes)

"""Reductions that carry several values at once, such as a sum of exponentials or of squares.

    looped    for each block:  largest, total = add_exponential(largest, total, x);   then all lanes joined
    at once   largest = max x;  total = sum of exp(x - largest)
    parts     each program's values in the workspace, joined as lanes are

`schedule/program/single_pass.py` says what these reductions are for. Lanes keep sums of their own, so that a loop needs
no exchange between them; the formula that joins two lanes joins two programs as well.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from compiler.codegen.triton.values.ops import DTYPES
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.schedule.program.program import Statement
from compiler.schedule.program.single_pass import FIELDS

HELPERS: dict[str, str] = {
    "add_exponential": '''@triton.jit
def add_exponential(largest, total, x):
    """One more value of a sum of exp(x - largest): the sum so far shrinks where the value is larger than all before.
    exp(-d) is taken as a power of two, inexact by the rounding of d: the larger d, the less the term counts."""
    distance = x - largest
    smaller = libdevice.exp2(tl.abs(distance) * -1.4426950408889634)
    total = tl.where(distance > 0, total * smaller + 1.0, total + smaller)
    return maximum_of_two(largest, x), total
''',
    "join_exponentials": '''@triton.jit
def join_exponentials(largest, total, axis: tl.constexpr):
    """The largest value along an axis, and the sums, each relative to a largest value of its own, relative to it."""
    highest = tl.reduce(largest, axis, maximum_of_two, keep_dims=True)
    return tl.sum(highest, axis), tl.sum(total * libdevice.exp(largest - highest), axis)
''',
    "add_square": '''@triton.jit
def add_square(shift, total, squares, x, mask, count):
    """One more value, in number `count`, of sums of distances and of their squares, relative to the first value: a mean
    that is large beside the distances costs no accuracy. What is moved to the mean later is at most so many times
    larger than what is left as there are values, since the first one is among them."""
    shift = tl.where((count == 1) & mask, x, shift)
    distance = tl.where(mask, x - shift, 0.0)
    return shift, total + distance, squares + distance * distance
''',
    "join_squares": '''@triton.jit
def join_squares(shift, total, squares, counts, length, axis: tl.constexpr):
    """The mean along an axis and the sum of squares of distances to it, of `length` values: of each lane there are
    `counts`, the sum of whose distances to `shift` is `total`, and of the squares of these distances `squares`."""
    filled = (counts > 0).to(shift.dtype)
    origin = tl.sum(filled * shift, axis, keep_dims=True) / tl.sum(filled, axis, keep_dims=True)
    mean_distance = total / tl.maximum(counts, 1.0)
    offset = shift - origin + mean_distance
    mean = tl.sum(counts * offset, axis, keep_dims=True) / length
    about_mean = squares - total * mean_distance + counts * (offset - mean) * (offset - mean)
    return tl.sum(origin + mean, axis), tl.sum(about_mean, axis)
''',
}


class States:
    """Prints these reductions for one plan; `lanes` gives a statement's operand with lanes outside of r filled."""

    def __init__(self, printer: StatementPrinter, writer: Writer, lanes: Callable[[Statement, str], str]) -> None:
        self.printer = printer
        self.writer = writer
        self.lanes = lanes

    @staticmethod
    def holds(statement: Statement) -> bool:
        return statement.op == "reduce" and statement.value in FIELDS

    @staticmethod
    def names(statement: Statement) -> tuple[str, str]:
        """The variables of its values, as `field` statements read them."""
        first, second = FIELDS[str(statement.value)]
        return f"{statement.target}_{first}", f"{statement.target}_{second}"

    def identities(self, statement: Statement) -> tuple[str, str]:
        """The values of no elements."""
        return (repr(torch.finfo(statement.dtype).min) if _is_exponential(statement) else "0.0"), "0.0"

    @property
    def _axis(self) -> int:
        return len(self.printer.vectors) - 1

    def _line(self, statement: Statement, text: str) -> None:
        self.writer.line(text, statement.nodes)

    # A loop over blocks -----------------------------------------------------------------------------------------

    def start(self, statement: Statement) -> None:
        name, dtype = statement.target, DTYPES[statement.dtype]
        shape = self.printer.shape(self.printer.all_axes)
        if _is_exponential(statement):
            starts = dict(zip(("largest_acc", "total_acc"), self.identities(statement), strict=True))
        else:
            self._line(statement, f"{name}_count = tl.full([], 0.0, {dtype})")
            starts = dict.fromkeys(("shift", "sum", "total_acc"), "0.0")
        for suffix, value in starts.items():
            self._line(statement, f"{name}_{suffix} = tl.full({shape}, {value}, {dtype})")

    def take(self, statement: Statement) -> None:
        """One block."""
        name = statement.target
        if _is_exponential(statement):
            values = f"{name}_largest_acc, {name}_total_acc"
            lanes = self.lanes(statement, 'float("-inf")')
            self._line(statement, f"{values} = add_exponential({values}, {lanes})")
            return
        values = f"{name}_shift, {name}_sum, {name}_total_acc"
        self._line(statement, f"{name}_count += 1.0")
        call = f"{values} = add_square({values}, {self.lanes(statement, '0.0')}, {self._mask}, {name}_count)"
        self._line(statement, call)

    @property
    def _mask(self) -> str:
        return " & ".join(self.printer.masks(frozenset("r"))) or "tl.full([], True, tl.int1)"

    def collapse(self, statement: Statement, first: str, last: str) -> None:
        """The values of all lanes after a loop from `first` to `last`."""
        name = statement.target
        if _is_exponential(statement):
            self._join(statement, f"{name}_largest_acc, {name}_total_acc")
            return
        lanes = f"tl.arange(0, RBLOCK){'[None, :]' if self._axis else ''}"
        length = last if first == "0" else f"({last} - {first})"
        counts = f"tl.cdiv({length} - {lanes}, RBLOCK).to({DTYPES[statement.dtype]})"
        self._line(statement, f"{name}_counts = {counts}")
        self._join(statement, f"{name}_shift, {name}_sum, {name}_total_acc, {name}_counts, {length}")

    def values(self, statement: Statement) -> list[tuple[str, torch.dtype, str]]:
        """What a program leaves of its part: variables, their dtypes, and the values of no elements."""
        values = zip(self.names(statement), self.identities(statement), strict=True)
        return [(name, statement.dtype, fill) for name, fill in values]

    leave = collapse

    def _join(self, statement: Statement, values: str) -> None:
        helper = "join_exponentials" if _is_exponential(statement) else "join_squares"
        targets = self.names(statement)
        self._line(statement, f"{', '.join(targets)} = {helper}({values}, {self._axis})")
        if self._axis:
            for target in targets:
                self._line(statement, f"{target} = {target}[:, None]")

    # A tile in registers -----------------------------------------------------------------------------------------

    def at_once(self, statement: Statement, length: str, share: str, keeps: bool = False) -> None:
        """The values of the tile, the part of a row of `length` elements that a program holds, `share` from the next
        one's; it `keeps` the exponentials."""
        first, second = self.names(statement)
        axis, spread = self._axis, "[:, None]" if self._axis else ""
        if _is_exponential(statement):
            lanes, (least, _) = self.lanes(statement, 'float("-inf")'), self.identities(statement)
            self._line(statement, f"{statement.target}_values = {lanes}")
            highest = f"tl.reduce({statement.target}_values, {axis}, maximum_of_two){spread}"
            self._line(statement, f"{first} = maximum_of_two({highest}, {least})")
            total = f"libdevice.exp({statement.target}_values - {first})"
            if keeps:
                self._line(statement, f"{statement.target}_own = {first}")
                self._line(statement, f"{statement.target}_kept = {total}")
                total = f"{statement.target}_kept"
            self._line(statement, f"{second} = tl.sum({total}, {axis}){spread}")
            return
        self._line(statement, f"{statement.target}_values = {self.lanes(statement, '0.0')}")
        count = f"tl.minimum({length} - part * {share}, {share})"
        self._line(statement, f"{first} = tl.sum({statement.target}_values, {axis}){spread} / {count}")
        self._line(statement, f"{statement.target}_away = {statement.target}_values - {first}")
        squares = f"{statement.target}_away * {statement.target}_away"
        if self.printer.masks(frozenset("r")):
            squares = f"tl.where(r_mask, {squares}, 0.0)"
        self._line(statement, f"{second} = tl.sum({squares}, {axis}){spread}")

    # Parts of several programs -----------------------------------------------------------------------------------

    def join_parts(self, statement: Statement, parts: list[str], chunk: str, length: str) -> None:
        """The result of all parts, whose values are loaded already: part number `parts` has `chunk` elements, the last
        the rest of `length`."""
        if _is_exponential(statement):
            self._join(statement, ", ".join(parts))
            return
        name = statement.target
        counts = f"tl.minimum(tl.maximum({length} - parts * {chunk}, 0), {chunk}).to({DTYPES[statement.dtype]})"
        # Not the name of the lanes' counts: inside of an `if`, Triton takes one name for one shape.
        self._line(statement, f"{name}_part_counts = {counts}")
        self._join(statement, f"{parts[0]}, 0.0, {parts[1]}, {name}_part_counts, {length}")


def _is_exponential(statement: Statement) -> bool:
    return statement.value == "exponentials"

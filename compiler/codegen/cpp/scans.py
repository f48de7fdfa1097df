"""Scans: the variables of running values, and how a pass adds elements to them, one by one or a vector at a time.

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
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from compiler.codegen.cpp.collisions import keeps_apart
from compiler.codegen.cpp.ops import columns_text, literal, value_type
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.reductions import Accumulator, joined, variables_of
from compiler.codegen.cpp.statements import StatementPrinter, within
from compiler.schedule.program.program import EFFECTS, Section, Statement, closure


class RunningValue(Accumulator):
    """What the scan `statement` has come to so far; `is_row` says that the lanes of a vector go on with it."""

    @property
    def name(self) -> str:
        return f"{self.statement.target}_so_far"

    @property
    def held(self) -> torch.dtype:
        """The dtype that the value runs in."""
        is_rounded = self.kind in ("sum", "prod") and self.dtype.is_floating_point
        return torch.float64 if is_rounded else self.dtype

    def take_next(self, operand: str, element: str) -> list[str]:
        """Statements that take the next element in; `element` completes the variables' names."""
        into = [f"{one.name}{element}" for one in self.variables()]
        return joined(self.kind, into, operand, self.notes_nan)

    def result(self, element: str = "") -> str:
        # What OpenMP takes from lane to lane is the larger number, whatever NaN is.
        text = super().result(element)
        return f"{text}_is_nan ? {literal(math.nan, self.dtype)} : {text}" if self.notes_nan else text


class ScanPrinter(StatementPrinter):
    """Prints the scans among the statements of a pass."""

    def __init__(self, plan: Plan, written_over: frozenset[str]) -> None:
        super().__init__(plan, written_over)
        self._declared: set[str] = set()

    def running(self, statement: Statement, is_in_lanes: bool = False) -> RunningValue:
        return RunningValue(statement, self.statements[statement.operands[0]].dtype, is_in_lanes)

    def start_scans(self, section: Section) -> None:
        """The running values of a pass, which outlive its chunks; the first pass that needs one declares it."""
        variables = variables_of(self._scans_of(section))
        names = {one.name for one in variables}
        fresh, self._declared = names - self._declared, self._declared | names
        is_array = self.plan.shape == "columns"
        for one in variables if is_array else ():
            if one.name in fresh:
                self.writer.line(columns_text(one.ctype, one.name, self.plan.block), one.nodes)
        if not variables:
            return
        with self.each_column():
            for one in variables:
                declared = f"{one.ctype} " if one.name in fresh and not is_array else ""
                self.writer.line(f"{declared}{one.name}{self.lane} = {one.start};", one.nodes)

    @contextmanager
    def each_column(self) -> Iterator[None]:
        """The vector loop over a block's columns; in `rows`, nothing."""
        if self.plan.shape != "columns" or self.plan.inner is None:
            yield
            return
        self.writer.line("#pragma omp simd")
        with self.writer.block(within(self.plan.inner)):
            yield

    def advance(self, scan: RunningValue) -> None:
        """Take the next element in, one element at a time."""
        self._take(scan)
        self._name_result(scan)

    def _take(self, scan: RunningValue) -> None:
        for text in scan.take_next(self.names[scan.statement.operands[0]], self.lane):
            self.writer.line(text, scan.statement.nodes)

    def _name_result(self, scan: RunningValue) -> None:
        statement = scan.statement
        value = f"const {value_type(statement.dtype)} {statement.target}"
        self.writer.line(f"{value} = {scan.result(self.lane)};", statement.nodes)
        if statement.number in self.plan.kept:
            self.writer.line(f"{self.kept_element(statement)} = {statement.target};", statement.nodes)

    # A vector of elements at a time.

    def is_in_lanes(self, section: Section) -> bool:
        """Whether a pass scans along contiguous rows in such a way that OpenMP can join the lanes of a vector. Its loop
        may then sum up nothing besides, and no scan may be made from another one's results."""
        scans = self._scans_still_due(section)
        if not scans or section.reductions or self.plan.shape != "rows" or not self.plan.r_loops:
            return False
        scanned = closure([number for scan in scans for number in scan.operands], self.statements)
        if any(scan.number in scanned or scan.dtype == torch.bool for scan in scans):
            return False
        return keeps_apart(self.plan.r_loops[-1], section.statements)

    def simd_of_scans(self, section: Section) -> None:
        """The pragma of the vector loop."""
        variables = variables_of(self._scans_of(section))
        clauses = "".join(f" reduction(inscan, {one.operator}: {one.name})" for one in variables)
        self.writer.line(f"#pragma omp simd{clauses}")

    def advance_in_lanes(self, section: Section) -> None:
        """What the loop does: what is scanned, the scans, and what is made of their results. C++ has these two parts
        apart, so that what both need is written twice; it is computed once."""
        statements, scans = self.without_kept(section), self._scans_of(section)
        scanned = closure([number for scan in scans for number in scan.statement.operands], self.statements)
        for statement in statements:
            if statement.number in scanned:
                self.statement(statement)
        for scan in scans:
            self._take(scan)
        names = ", ".join(one.name for one in variables_of(scans))
        self.writer.line(f"#pragma omp scan inclusive({names})")
        self.kept_so_far |= self.plan.kept.keys() & {s.number for s in statements if s.number in scanned}
        results = {scan.statement.number: scan for scan in scans}
        for statement in self._made_of_results(statements):
            if statement.number in results:
                self._name_result(results[statement.number])
            else:
                self.statement(statement)

    def _made_of_results(self, statements: list[Statement]) -> list[Statement]:
        """The stores of a pass and what leads to them, as far back as the scans."""
        needed: set[int] = set()
        for statement in reversed(statements):
            is_kept = statement.op == "scan" and statement.number in self.plan.kept
            if statement.op in (*EFFECTS, "across") or is_kept or statement.number in needed:
                needed.add(statement.number)
                if statement.op != "scan" and statement.number not in self.kept_so_far:
                    needed |= statement.needs
        return [s for s in statements if s.number in needed]

    def _scans_of(self, section: Section) -> list[RunningValue]:
        is_in_lanes = self.is_in_lanes(section)
        return [self.running(scan, is_in_lanes) for scan in self._scans_still_due(section)]

    def _scans_still_due(self, section: Section) -> list[Statement]:
        return [s for s in self.without_kept(section) if self.is_scanned(s)]

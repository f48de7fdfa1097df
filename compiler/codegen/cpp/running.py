"""Running values of the scans in a pass, element by element.

    double total_so_far = 0.0;
    for r ...:  total_so_far += x_ptr[r];  total = float(total_so_far)

Sums and products of float32 run in double, as ATen's do on a CPU: a long row of roundings would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from compiler.codegen.cpp.ops import columns_text, value_type
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.reductions import highest, joined, lowest, zero_or_one
from compiler.codegen.cpp.statements import StatementPrinter, within
from compiler.schedule.program.program import Section, Statement


class ScanPrinter(StatementPrinter):
    """Prints the scans among the statements of a pass."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._declared: set[str] = set()

    def start_scans(self, section: Section) -> None:
        """The running values of a pass, which outlive its chunks; the first pass that needs one declares it."""
        scans = [statement for statement in self.without_kept(section) if self.is_scanned(statement)]
        fresh = [scan for scan in scans if scan.target not in self._declared]
        self._declared |= {scan.target for scan in fresh}
        is_array = self.plan.shape == "columns"
        for scan in fresh if is_array else ():
            ctype = value_type(self._running_dtype(scan))
            self.writer.line(columns_text(ctype, f"{scan.target}_so_far", self.plan.block), scan.nodes)
        if not scans:
            return
        with self.each_column():
            for scan in scans:
                dtype = self._running_dtype(scan)
                declared = f"{value_type(dtype)} " if scan in fresh and not is_array else ""
                start = _start(str(scan.value), dtype)
                self.writer.line(f"{declared}{scan.target}_so_far{self.lane} = {start};", scan.nodes)

    @contextmanager
    def each_column(self) -> Iterator[None]:
        """The vector loop over a block's columns; in `rows`, nothing."""
        if self.plan.shape != "columns" or self.plan.inner is None:
            yield
            return
        self.writer.line("#pragma omp simd")
        with self.writer.block(within(self.plan.inner)):
            yield

    def advance(self, scan: Statement) -> None:
        """Take the next element in."""
        running, ctype = f"{scan.target}_so_far{self.lane}", value_type(scan.dtype)
        for text in joined(str(scan.value), [running], self.names[scan.operands[0]], notes_nan=False):
            self.writer.line(text, scan.nodes)
        is_converted = self._running_dtype(scan) != self.statements[scan.operands[0]].dtype
        result = f"{ctype}({running})" if is_converted else running
        self.writer.line(f"const {ctype} {scan.target} = {result};", scan.nodes)
        if scan.number in self.plan.kept:
            self.writer.line(f"{self.kept_place(scan)} = {scan.target};", scan.nodes)

    def _running_dtype(self, scan: Statement) -> torch.dtype:
        """The dtype that the value runs in."""
        dtype = self.statements[scan.operands[0]].dtype
        return torch.float64 if scan.value in ("sum", "prod") and dtype.is_floating_point else dtype


def _start(kind: str, dtype: torch.dtype) -> str:
    """Before the first element."""
    if kind in ("sum", "prod"):
        return zero_or_one(kind, dtype)
    return highest(dtype) if kind == "min" else lowest(dtype)

"""Running values of the scans in a pass, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compiler.codegen.cpp.ops import columns_text, value_type
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.scans import RunningValue
from compiler.codegen.cpp.statements import StatementPrinter, within
from compiler.schedule.program.program import Section, Statement


class ScanPrinter(StatementPrinter):
    """Prints the scans among the statements of a pass."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._declared: set[str] = set()

    def running(self, statement: Statement) -> RunningValue:
        return RunningValue(statement, self.statements[statement.operands[0]].dtype)

    def start_scans(self, section: Section) -> None:
        """The running values of a pass, which outlive its chunks; the first pass that needs one declares it."""
        scans = [self.running(s) for s in self.without_kept(section) if self.is_scanned(s)]
        fields = [(scan, field) for scan in scans for field in scan.fields]
        names = {f"{scan.name}{field.suffix}" for scan, field in fields}
        fresh, self._declared = names - self._declared, self._declared | names
        is_array = self.plan.shape == "columns"
        for scan, field in fields if is_array else ():
            if (name := f"{scan.name}{field.suffix}") in fresh:
                self.writer.line(columns_text(field.ctype, name, self.plan.block), scan.statement.nodes)
        if not fields:
            return
        with self.each_column():
            for scan, field in fields:
                name = f"{scan.name}{field.suffix}"
                declared = f"{field.ctype} " if name in fresh and not is_array else ""
                self.writer.line(f"{declared}{name}{self.lane} = {field.start};", scan.statement.nodes)

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
        """Take the next element in."""
        for text in scan.take([self.names[number] for number in scan.statement.operands], self.lane):
            self.writer.line(text, scan.statement.nodes)
        statement = scan.statement
        value = f"const {value_type(statement.dtype)} {statement.target}"
        self.writer.line(f"{value} = {scan.result(self.lane)};", statement.nodes)
        if statement.number in self.plan.kept:
            self.writer.line(f"{self.kept_place(statement)} = {statement.target};", statement.nodes)

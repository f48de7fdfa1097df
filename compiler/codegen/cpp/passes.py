"""One pass over the reduction loops: accumulators, chunks, the vector loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from compiler.codegen.cpp.ops import value_type
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.reductions import Accumulator
from compiler.codegen.cpp.scans import RunningValue
from compiler.codegen.cpp.statements import StatementPrinter, over, within
from compiler.codegen.program import Section, Statement
from compiler.ir.size import is_multiple, text_of


class PassPrinter(StatementPrinter):
    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.declared_scans: set[int] = set()

    def run_pass(self, section: Section) -> None:
        plan, writer = self.plan, self.writer
        accumulators = [
            Accumulator(s, self.statements[s.operands[0]].dtype, plan.shape == "rows") for s in section.reductions
        ]
        self._pass_comment(section, accumulators)
        self.declare_kept(section)
        self._start_scans(section)
        is_split = plan.parallel == "chunks" and plan.is_cut
        if not plan.is_cut:
            self._declare(accumulators, "")
            with ExitStack() as loops:
                self._r_loops(loops, section, accumulators)
        else:
            self._declare(accumulators, "")
            if is_split:
                self._declare_parts(accumulators)
                writer.line(f"#pragma omp parallel for schedule(static){plan.worth_threads}")
            with writer.block(f"for (int64_t chunk = 0; chunk < {plan.chunks}; ++chunk)"):
                self._chunk(section, accumulators, is_split)
            if is_split and accumulators:
                if plan.shape == "rows":
                    self._simd(accumulators, "")
                with writer.block(f"for (int64_t chunk = 0; chunk < {plan.chunks}; ++chunk)"):
                    self._combine(accumulators, "_of_chunk", f"[chunk]{self.lane}")
        for accumulator in accumulators:
            for text in accumulator.finish():
                writer.line(text, accumulator.statement.nodes)
            self.names[accumulator.statement.number] = f"{accumulator.name}{self.lane}"

    def _pass_comment(self, section: Section, accumulators: list[Accumulator]) -> None:
        names = ", ".join(dim.name for dim in self.plan.r_loops) or "one point"
        does = [a.kind for a in accumulators] + [f"running {s.value}" for s in section.scans]
        does += [f"store {s.buffer}" for s in section.statements if s.op == "store"]
        place = self.passes.index(section) + 1
        self.writer.comment(f"Pass {place} of {len(self.passes)} over {names}: {', '.join(dict.fromkeys(does))}.")

    def _chunk(self, section: Section, accumulators: list[Accumulator], is_split: bool) -> None:
        """One chunk: its own accumulators, which hide or join those of the whole."""
        plan, writer, dim = self.plan, self.writer, self.plan.r_loops[0]
        chunk = str(plan.chunk)
        if plan.shares:
            chunk = f"{dim.name}_share"
            writer.line(f"const int64_t {chunk} = ({text_of(dim.size + (plan.shares - 1))}) / {plan.shares};")
        writer.line(f"const int64_t {dim.name}_start = chunk * {chunk};")
        last = f"{dim.name}_start + {chunk}"
        if plan.shares or not is_multiple(dim.size, plan.chunk):
            last = f"fs::minimum<int64_t>({last}, {text_of(dim.size)})"
        writer.line(f"const int64_t {dim.name}_end = {last};")
        self._declare(accumulators, "_here")
        with ExitStack() as loops:
            self._r_loops(loops, section, accumulators, "_here")
        if not accumulators:
            return
        if not is_split:
            self._combine(accumulators, "_here", self.lane)
            return
        with self._each_column():
            for a in accumulators:
                for field in a.fields:
                    writer.line(
                        f"{a.name}{field.suffix}_of_chunk[chunk]{self.lane} = {a.name}{field.suffix}_here{self.lane};"
                    )

    @contextmanager
    def _each_column(self) -> Iterator[None]:
        """The vector loop over a block's columns; in `rows`, nothing."""
        if self.plan.shape != "columns" or self.plan.inner is None:
            yield
            return
        self.writer.line("#pragma omp simd")
        with self.writer.block(within(self.plan.inner)):
            yield

    def _declare(self, accumulators: list[Accumulator], suffix: str) -> None:
        writer, is_array = self.writer, self.plan.shape == "columns"
        for a in accumulators:
            for field in a.fields:
                name = f"{a.name}{field.suffix}{suffix}"
                text = (
                    f"{field.ctype} {name}[{self.plan.block}];"
                    if is_array
                    else (f"{field.ctype} {name} = {field.start};")
                )
                writer.line(text, a.statement.nodes)
        if is_array and accumulators:
            with self._each_column():
                for a in accumulators:
                    for field in a.fields:
                        writer.line(f"{a.name}{field.suffix}{suffix}{self.lane} = {field.start};", a.statement.nodes)

    def _declare_parts(self, accumulators: list[Accumulator]) -> None:
        columns = f"[{self.plan.block}]" if self.plan.shape == "columns" else ""
        for a in accumulators:
            for field in a.fields:
                self.writer.line(
                    f"{field.ctype} {a.name}{field.suffix}_of_chunk[{self.plan.chunks}]{columns};", a.statement.nodes
                )

    def _combine(self, accumulators: list[Accumulator], other_suffix: str, other_place: str) -> None:
        with self._each_column():
            for a in accumulators:
                for text in a.combine("", self.lane, other_suffix, other_place):
                    self.writer.line(text, a.statement.nodes)

    def _r_loops(self, loops: ExitStack, section: Section, accumulators: list[Accumulator], suffix: str = "") -> None:
        plan, writer = self.plan, self.writer
        for place, dim in enumerate(plan.r_loops):
            if plan.shape == "rows" and place == len(plan.r_loops) - 1:
                self._simd(accumulators, suffix, section.statements)
            loops.enter_context(writer.block(within(dim) if place == 0 and plan.is_cut else over(dim)))
        if plan.shape == "columns":
            assert plan.inner is not None
            self.simd(section.statements, plan.inner)
            loops.enter_context(writer.block(within(plan.inner)))
        elif not plan.r_loops:
            loops.enter_context(writer.block(""))
        by_number = {a.statement.number: a for a in accumulators}
        for statement in self.without_kept(section):
            accumulator = by_number.get(statement.number)
            if statement.op == "scan":
                self._advance(self._running(statement))
                continue
            if accumulator is None:
                self.statement(statement)
                continue
            operands = [self.names[number] for number in statement.operands]
            for text in accumulator.take(operands, suffix, self.lane):
                writer.line(text, statement.nodes)
        for number in plan.kept & {s.number for s in section.statements}:
            self.kept_so_far.add(number)

    def _running(self, statement: Statement) -> RunningValue:
        return RunningValue(statement, self.statements[statement.operands[0]].dtype)

    def _start_scans(self, section: Section) -> None:
        """The running values of a pass, which outlive its chunks; the first pass that needs one declares it."""
        scans = [self._running(s) for s in self.without_kept(section) if s.op == "scan"]
        fields = [(scan, field) for scan in scans for field in scan.fields]
        fresh = [(scan, field) for scan, field in fields if scan.statement.number not in self.declared_scans]
        self.declared_scans |= {scan.statement.number for scan in scans}
        is_array = self.plan.shape == "columns"
        for scan, field in fresh if is_array else ():
            self.writer.line(f"{field.ctype} {scan.name}{field.suffix}[{self.plan.block}];", scan.statement.nodes)
        if not fields:
            return
        with self._each_column():
            for scan, field in fields:
                declared = f"{field.ctype} " if (scan, field) in fresh and not is_array else ""
                name = f"{scan.name}{field.suffix}{self.lane}"
                self.writer.line(f"{declared}{name} = {field.start};", scan.statement.nodes)

    def _advance(self, scan: RunningValue) -> None:
        statement = scan.statement
        for text in scan.take([self.names[number] for number in statement.operands], self.lane):
            self.writer.line(text, statement.nodes)
        value = f"const {value_type(statement.dtype)} {statement.target}"
        self.writer.line(f"{value} = {scan.result(self.lane)};", statement.nodes)

    def _simd(self, accumulators: list[Accumulator], suffix: str, statements: tuple[Statement, ...] = ()) -> None:
        """The pragma of the vector loop of a row; positions are found one by one, and a scan goes step by step."""
        if any(a.is_positional for a in accumulators) or any(s.op == "scan" for s in statements):
            return
        by_operator: dict[str, list[str]] = {}
        for a in accumulators:
            names = {a.name: f"{a.name}{suffix}", f"{a.name}_is_nan": f"{a.name}_is_nan{suffix}"}
            for operator, name in a.simd_clauses():
                by_operator.setdefault(operator, []).append(names[name])
        clauses = "".join(f" reduction({op}: {', '.join(names)})" for op, names in by_operator.items())
        self.simd(statements, self.plan.r_loops[-1], clauses)

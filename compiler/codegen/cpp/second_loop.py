"""The second loop over a chunk: sums that are relative to a result of the first loop (see `relative.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from compiler.codegen.cpp.lanes import LanePrinter, Lanes, Variable, lanes_of
from compiler.codegen.cpp.ops import literal
from compiler.codegen.cpp.relative import RelativeSum
from compiler.codegen.cpp.statements import over, within
from compiler.ir.index import Dim
from compiler.ir.size import text_of
from compiler.schedule.program.program import Section, Statement


class RelativeSumPrinter(LanePrinter):
    """Prints the relative sums of a pass, and what every loop over a chunk begins with."""

    @property
    def count_of_chunk(self) -> str:
        """How many points of the reduction a chunk has."""
        first, *others = self.plan.r_loops
        of_first = [] if self.plan.is_chunk_one_point else [f"({first.name}_end - {first.name}_start)"]
        return " * ".join([*of_first, *(f"({text_of(dim.size)})" for dim in others)])

    @property
    def of_columns(self) -> str:
        """The length of an array that has a value for each column; empty where a row is summed up."""
        return f"[{self.plan.block}]" if self.plan.shape == "columns" else ""

    @property
    def loops_of_a_chunk(self) -> tuple[Dim, ...]:
        return self.plan.r_loops[1:] if self.plan.is_chunk_one_point else self.plan.r_loops

    def head_of_loop(self, dim: Dim) -> str:
        """Of a reduction loop: the first one goes over its chunk alone."""
        return within(dim) if self.plan.is_cut and dim == self.plan.r_loops[0] else over(dim)

    def bounds_of_loop(self, dim: Dim) -> tuple[int | str, int | str]:
        """Where a reduction loop begins and ends."""
        if self.plan.is_cut and dim == self.plan.r_loops[0]:
            return f"{dim.name}_start", f"{dim.name}_end"
        return 0, dim.size if isinstance(dim.size, int) else text_of(dim.size)

    def prepare_row(self, loops: ExitStack, statements: Sequence[Statement], dim: Dim) -> None:
        """Draw and convert beforehand what the innermost loop asks for; nothing where the kernel computes how long a
        chunk is, since an array for it needs a length."""
        is_within = self.plan.is_cut and dim == self.plan.r_loops[0]
        if not (is_within and self.plan.shares):
            most = self.plan.chunk if is_within else dim.size
            loops.enter_context(self.preparing(statements, dim, is_within, most))

    def second_loop(self, section: Section, relative: list[RelativeSum]) -> None:
        """Over the chunk once more, which is in the cache now."""
        plan, writer, columns = self.plan, self.writer, self.of_columns
        self._start_sums(relative)
        needed = {number for one in relative for number in one.statement.operands}
        for statement in reversed(section.statements):
            if statement.number in needed and statement.number not in self.kept_so_far:
                needed |= statement.needs
        again = [statement for statement in section.statements if statement.number in needed]
        variables = [
            Variable(one.ctype, f"{name}_here", literal(0, one.dtype), "+") for one in relative for name in one.sums
        ]
        lanes = lanes_of(plan, again, max(one.dtype.itemsize for one in relative))
        with ExitStack() as loops:
            if lanes is not None:
                self.declare_lanes(lanes, variables)
                loops.callback(self.join_lanes, lanes, variables)
            for dim in self.loops_of_a_chunk:
                if not columns and dim == plan.r_loops[-1]:
                    self.prepare_row(loops, again, dim)
                    if lanes is not None:
                        self._terms_in_lanes(lanes, again, relative)
                        break
                loops.enter_context(writer.block(self.head_of_loop(dim)))
            else:
                if columns and plan.inner is not None:
                    loops.enter_context(self.preparing(again, plan.inner, True, plan.block))
                    self.simd(section.statements, plan.inner)
                    loops.enter_context(writer.block(within(plan.inner)))
                self._terms(again, relative, f"_here{self.lane}")
        put_right = [(one, text) for one in relative for text in one.put_right(self.lane, self.count_of_chunk)]
        if put_right:
            with self.each_column():
                for one, text in put_right:
                    writer.line(text, one.statement.nodes)

    def _terms_in_lanes(self, lanes: Lanes, statements: list[Statement], relative: list[RelativeSum]) -> None:
        self.loop_in_lanes(
            lanes,
            self.bounds_of_loop(lanes.dim),
            lambda ending, place: self._terms(statements, relative, f"_here{ending}{place}"),
            lambda: self.simd(statements, lanes.dim),
        )

    def _terms(self, statements: list[Statement], relative: list[RelativeSum], ending: str) -> None:
        """What one point adds; `ending` completes the names of the sums."""
        for statement in statements:
            self.statement(statement)
        for one in relative:
            value = self.names[one.statement.operands[0]]
            terms = one.terms(value, f"{one.name}_base_here{self.lane}")
            for name, term in zip(one.sums, terms, strict=True):
                self.writer.line(f"{name}{ending} += {term};", one.statement.nodes)

    def _start_sums(self, relative: list[RelativeSum]) -> None:
        """What each sum of the chunk is relative to, and its zeros; of columns, an array of each."""
        writer, columns = self.writer, self.of_columns
        for one in relative:
            for text in [] if columns else _renamed(one.first.finish(), one):
                writer.line(text, one.statement.nodes)
            base = "" if columns else f" = {one.base(f'{one.first.name}_here', self.count_of_chunk)}"
            start = "" if columns else f" = {literal(0, one.dtype)}"
            writer.line(f"{one.ctype} {one.name}_base_here{columns}{base};", one.statement.nodes)
            for name in one.sums:
                writer.line(f"{one.ctype} {name}_here{columns}{start};", one.statement.nodes)
        if columns:
            with self.each_column():
                for one in relative:
                    first = one.base(f"{one.first.name}_here{self.lane}", self.count_of_chunk)
                    writer.line(f"{one.name}_base_here{self.lane} = {first};", one.statement.nodes)
                    for name in one.sums:
                        writer.line(f"{name}_here{self.lane} = {literal(0, one.dtype)};", one.statement.nodes)

    def join_chunk(self, relative: list[RelativeSum], suffix: str, place: str) -> None:
        if not relative:
            return
        with self.each_column():
            for one in relative:
                base, total = (f"{one.name}_{what}{suffix}{place}" for what in ("base", "sum"))
                self.writer.line(one.join(self.lane, base, total, self.count_of_chunk), one.statement.nodes)

    def declare_relative_parts(self, relative: list[RelativeSum]) -> None:
        for one in relative:
            for what in ("base", "sum"):
                name = f"{one.name}_{what}_of_chunk[{self.plan.chunks}]{self.of_columns}"
                self.writer.line(f"{one.ctype} {name};", one.statement.nodes)


def _renamed(texts: list[str], one: RelativeSum) -> list[str]:
    """What finishes the first loop's value, for the variables of a chunk."""
    name = one.first.name
    return [
        text.replace(f"{name}_is_nan", f"{name}_is_nan_here").replace(f"{name} =", f"{name}_here =") for text in texts
    ]

"""Print what a CPU kernel reduces across its rows x: for each r, or to one value.

The outermost loop over x is cut into parts, as many whatever the number of threads, so that neither is the result. Each
part adds to values of its own; when all are done they are joined in order, and the tail computes with the results.
Sums of float32 are kept in double precision, since a part adds one row after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from compiler.codegen.cpp.passes import PassPrinter
from compiler.codegen.cpp.reductions import Accumulator
from compiler.codegen.cpp.statements import over
from compiler.ir.size import known
from compiler.schedule.program.program import EFFECTS, Statement, closure


class AcrossPrinter(PassPrinter):
    """Prints the frame of a kernel whose plan has `parts`; the rows of a part are printed by `each_row`."""

    def statement(self, statement: Statement) -> None:
        if statement.op != "across":
            super().statement(statement)
            return
        operands = [self.names[number] for number in statement.operands]
        has_columns = self.plan.shape == "columns"
        gathered = self._of_columns(statement) if has_columns else self._gathered(statement)
        into = ("_of_block_columns", self.lane) if has_columns else ("_of_part", f"[{self._index(statement)}]")
        for text in gathered.take(operands, *into):
            self.writer.line(text, statement.nodes)

    @contextmanager
    def gathering(self, statements: Iterable[Statement]) -> Iterator[None]:
        """Around the vector loop over a block of columns that does `statements`: each column gathers for itself, in the
        type of the values, and then the part takes in what the block has come to."""
        across = [statement for statement in statements if statement.op == "across"]
        of_block = [self._of_columns(s).variables("_of_block")[0] for s in across]
        for one in of_block:
            self.declare_array(one, "_columns", self.plan.block)
        yield
        for s, one in zip(across, of_block, strict=True):
            self.writer.line(f"{one.ctype} {one.name} = {one.start};", s.nodes)
            self.join_array(one, "_columns", self.plan.block)
            for text in self._gathered(s).take([one.name], "_of_part", f"[{self._index(s)}]"):
                self.writer.line(text, s.nodes)

    def parts(self) -> None:
        plan, writer = self.plan, self.writer
        across = plan.program.across
        for s in across:
            ctype = self._gathered(s).variables()[0].ctype
            count = plan.parts * self._values(s)
            writer.line(f"const fs::Values<{ctype}> {s.target}_parts({count});", s.nodes)
        if plan.parallel == "parts":
            writer.line("#pragma omp parallel for schedule(static)")
        with writer.block(f"for (int64_t part = 0; part < {plan.parts}; ++part)"):
            for s in across:
                (one,), values = self._gathered(s).variables("_of_part"), self._values(s)
                writer.line(f"{one.ctype}* {one.name} = {s.target}_parts.first + {values} * part;", s.nodes)
                writer.line(f"fs::fill<{one.ctype}>({one.name}, {values}, {one.start});", s.nodes)
            self.each_row()
        writer.comment("All parts as one, always in the same order.")
        for s in across:
            self._join(s)
        self._tail()

    def each_row(self) -> None:
        raise NotImplementedError

    def _of_columns(self, statement: Statement) -> Accumulator:
        return Accumulator(statement, self.statements[statement.operands[0]].dtype, is_row=False)

    def _gathered(self, statement: Statement) -> Accumulator:
        dtype = self.statements[statement.operands[0]].dtype
        return Accumulator(statement, torch.float64 if self._is_in_double(statement) else dtype, is_row=False)

    def _is_in_double(self, statement: Statement) -> bool:
        dtype = self.statements[statement.operands[0]].dtype
        return statement.value in ("sum", "prod") and dtype == torch.float32

    def _values(self, statement: Statement) -> int:
        return known(self.program.space.reduction_numel) if statement.level == "r" else 1

    def _index(self, statement: Statement) -> str:
        position = ""
        for dim in self.plan.r_loops if statement.level == "r" else ():
            position = f"{dim.size} * ({position}) + {dim.name}" if position else dim.name
        return position or "0"

    def _join(self, statement: Statement) -> None:
        values, writer = self._values(statement), self.writer
        with ExitStack() as loops:
            loops.enter_context(writer.block(f"for (int64_t part = 1; part < {self.plan.parts}; ++part)"))
            loops.enter_context(writer.block(f"for (int64_t element = 0; element < {values}; ++element)"))
            other = f"[{values} * part + element]"
            for text in self._gathered(statement).combine("_parts", "[element]", "_parts", other):
                writer.line(text, statement.nodes)

    def _tail(self) -> None:
        """Once for each r, what is stored there; and once, what is stored or checked that depends on no loop."""
        # What depends on no loop is computed anew: a block of columns had it in an array.
        self.names |= {s.number: self._first_name(s) for s in self.program.tail}
        for s in self.program.across:
            value = f"{s.target}_parts[{self._index(s)}]"
            self.names[s.number] = f"float({value})" if self._is_in_double(s) else value
        stores = [s for s in self.program.tail if s.op in EFFECTS]
        of_rows = [s for s in stores if s.index is not None and not s.index.dims.isdisjoint(self.plan.r_loops)]
        for chosen, dims in ((of_rows, self.plan.r_loops), ([s for s in stores if s not in of_rows], ())):
            if not chosen:
                continue
            with ExitStack() as loops:
                if not dims:
                    loops.enter_context(self.writer.block(""))
                for dim in dims:
                    loops.enter_context(self.writer.block(over(dim)))
                for statement in self._needed(chosen):
                    self.statement(statement)

    def _needed(self, stores: list[Statement]) -> list[Statement]:
        """The statements of the tail that lead to some of its stores and checks. What was gathered is there by now."""
        needed = closure((s.number for s in stores), self.statements, {s.number for s in self.program.across})
        return [s for s in self.program.tail if s.number in needed]

"""The C++ printer: a kernel program, laid out by its plan, as one function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod

import torch

from compiler.codegen.cpp.ops import (
    convert,
    index_text,
    literal,
    load_text,
    pointwise_text,
    storage_type,
    store_text,
    value_type,
)
from compiler.codegen.cpp.plan import ENOUGH_PIECES, Plan, make_plan
from compiler.codegen.cpp.reductions import Accumulator
from compiler.codegen.cpp.writer import Writer
from compiler.codegen.program import RenderedKernel, Section, Statement, build_program, identifier
from compiler.ir.index import Dim
from compiler.schedule.group import Group


def render_cpp(group: Group, storage: dict[str, torch.dtype]) -> RenderedKernel:
    """The kernel of `group` as C++; `storage` gives the dtype of every buffer that it touches.

    `extern "C" void NAME(const T* a_ptr, ..., T* out_ptr)`: the parameters are the buffers that it reads, then those
    that it writes, as in `RenderedKernel.parameters`.
    """
    plan = make_plan(build_program(group, storage))
    printer = _Printer(plan)
    printer.print()
    program = plan.program
    parameters = tuple(dict.fromkeys((*program.reads, *program.writes)))
    config: dict[str, int | str | tuple[int, ...]] = {"shape": plan.shape, "parallel": plan.parallel}
    config |= {name: size for name, size in (("block", plan.block), ("chunk", plan.chunk)) if size}
    return RenderedKernel(program.name, "cpp", printer.writer.text, parameters, printer.writer.origins, config)


class _Printer:
    """Prints one plan. `names` holds what each value is called at the present place."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.program = plan.program
        self.writer = Writer()
        self.statements = {s.number: s for s in self.program.statements}
        self.names = {s.number: self._first_name(s) for s in self.program.statements}
        self.narrow = frozenset(s.number for s in self.program.statements if s.dtype != torch.int64)
        self.kept_so_far: set[int] = set()
        self.passes = [section for section in self.program.sections if section.level == "r"]
        self.shared = self._values_of_several_sections()
        taken = {s.target for s in self.program.statements}
        self.pointers = {name: _pointer(name, taken) for name in (*self.program.reads, *self.program.writes)}

    def _first_name(self, statement: Statement) -> str:
        if statement.op != "constant":
            return statement.target
        text = literal(statement.value, statement.dtype)
        return f"({text})" if text.startswith("-") else text

    def _values_of_several_sections(self) -> frozenset[int]:
        """x-level values that another section than their own reads; in `columns` they are arrays."""
        shared: set[int] = set()
        for section in self.program.sections:
            own = {s.number for s in section.statements if s.op != "reduce"}
            shared |= {number for s in section.statements for number in s.needs if number not in own}
        return frozenset(n for n in shared if self.statements[n].op != "constant")

    # The function and its loops over x.

    def print(self) -> None:
        writer, program = self.writer, self.program
        writer.line('#include "fusionscope.h"')
        writer.line()
        for line in self._description():
            writer.comment(line)
        written = set(program.writes)
        parameters = [
            f"{'' if name in written else 'const '}{storage_type(program.storage[name])}* __restrict__ "
            f"{self.pointers[name]}" for name in dict.fromkeys((*program.reads, *program.writes))]
        writer.signature(f'extern "C" void {identifier(program.name)}', parameters)
        with writer.indented():
            {"pointwise": self._pointwise, "rows": self._rows, "columns": self._columns}[self.plan.shape]()
        writer.line("}")

    def _description(self) -> list[str]:
        plan, space = self.plan, self.program.space
        loops = {"pointwise": "vectors along {}", "rows": "vectors along the reduction", "columns": "vectors along {}"}
        text = loops[plan.shape].format(plan.inner.name if plan.inner else "one point")
        parallel = {"no": "one thread", "x": "threads over x", "chunks": "threads over chunks of the reduction"}
        return [f"{self.program.name} over {space}: {text}, {parallel[plan.parallel]}."]

    def _pointwise(self) -> None:
        plan = self.plan
        if plan.inner is None:
            self._sections_at_x()
            return
        with ExitStack() as loops:
            outer = [_over(dim) for dim in plan.outer]
            if plan.across is not None:
                outer.append(_over_blocks(plan.across, plan.block))
            if plan.block:
                outer.append(_over_blocks(plan.inner, plan.block))
            sizes = [dim.size for dim in plan.outer]
            sizes += [-(-dim.size // plan.block) for dim in (plan.across, plan.inner) if dim and plan.block]
            if not outer and plan.parallel == "x":
                self.writer.line("#pragma omp parallel for simd schedule(static)")
            else:
                self._nest(loops, outer, sizes)
                for dim in (plan.across, plan.inner) if plan.block else ():
                    if dim is not None:
                        self._block_end(dim)
                if plan.across is not None:
                    loops.enter_context(self.writer.block(_within(plan.across)))
                self.writer.line("#pragma omp simd")
            loops.enter_context(self.writer.block(_within(plan.inner) if plan.block else _over(plan.inner)))
            self._sections_at_x()

    def _sections_at_x(self) -> None:
        for section in self.program.sections:
            for statement in section.statements:
                self._statement(statement)

    def _rows(self) -> None:
        with ExitStack() as loops:
            self._nest(loops, [_over(dim) for dim in self.plan.outer], [dim.size for dim in self.plan.outer])
            for section in self.program.sections:
                if section.level == "x":
                    for statement in section.statements:
                        self._statement(statement)
                else:
                    self._pass(section)

    def _columns(self) -> None:
        plan = self.plan
        assert plan.inner is not None
        blocks = -(-plan.inner.size // plan.block) if plan.block else 1
        with ExitStack() as loops:
            self._nest(loops, [*map(_over, plan.outer), _over_blocks(plan.inner, max(plan.block, 1))],
                       [*(dim.size for dim in plan.outer), blocks])
            self._block_end(plan.inner)
            for section in self.program.sections:
                if section.level == "r":
                    self._pass(section)
                    continue
                computed = [s for s in section.statements if s.op != "constant"]
                for statement in computed:
                    if statement.number in self.shared:
                        self.writer.line(f"{value_type(statement.dtype)} {statement.target}[{plan.block}];")
                        self.names[statement.number] = f"{statement.target}{self._lane}"
                if computed:
                    self.writer.line("#pragma omp simd")
                    with self.writer.block(_within(plan.inner)):
                        for statement in computed:
                            self._statement(statement)

    @property
    def _lane(self) -> str:
        """The element of a block's array that belongs to the present column; nothing in the other shapes."""
        inner = self.plan.inner
        return f"[{inner.name} - {inner.name}_start]" if self.plan.shape == "columns" and inner else ""

    def _nest(self, loops: ExitStack, heads: list[str], sizes: list[int]) -> None:
        """Enter the loops, as many of the outer ones together in parallel as are worth it."""
        if self.plan.parallel == "x" and heads:
            together = next((n for n in range(1, len(sizes)) if prod(sizes[:n]) >= ENOUGH_PIECES), len(sizes))
            collapse = f" collapse({together})" if together > 1 else ""
            self.writer.line(f"#pragma omp parallel for{collapse} schedule(static)")
        for head in heads:
            loops.enter_context(self.writer.block(head))

    def _block_end(self, dim: Dim) -> None:
        name, block = dim.name, self.plan.block
        if dim.size % max(block, 1) == 0:
            self.writer.line(f"const int64_t {name}_end = {name}_start + {block};")
        else:
            self.writer.line(f"const int64_t {name}_end = fs::minimum<int64_t>({name}_start + {block}, {dim.size});")

    # One pass over the reduction loops.

    def _pass(self, section: Section) -> None:
        plan, writer = self.plan, self.writer
        accumulators = [
            Accumulator(s, self.statements[s.operands[0]].dtype, plan.shape == "rows") for s in section.reductions]
        self._pass_comment(section, accumulators)
        self._declare_kept(section)
        is_split = plan.parallel == "chunks" and bool(plan.chunk)
        if not plan.chunk:
            self._declare(accumulators, "")
            with ExitStack() as loops:
                self._r_loops(loops, section, accumulators)
        else:
            self._declare(accumulators, "")
            if is_split:
                self._declare_parts(accumulators)
                writer.line("#pragma omp parallel for schedule(static)")
            with writer.block(f"for (int64_t chunk = 0; chunk < {plan.chunks}; ++chunk)"):
                self._chunk(section, accumulators, is_split)
            if is_split and accumulators:
                with writer.block(f"for (int64_t chunk = 0; chunk < {plan.chunks}; ++chunk)"):
                    self._combine(accumulators, "_of_chunk", f"[chunk]{self._lane}")
        for accumulator in accumulators:
            for text in accumulator.finish():
                writer.line(text, accumulator.statement.nodes)
            self.names[accumulator.statement.number] = f"{accumulator.name}{self._lane}"

    def _pass_comment(self, section: Section, accumulators: list[Accumulator]) -> None:
        names = ", ".join(dim.name for dim in self.plan.r_loops) or "one point"
        does = [a.kind for a in accumulators] + [f"store {s.buffer}" for s in section.statements if s.op == "store"]
        place = self.passes.index(section) + 1
        self.writer.comment(f"Pass {place} of {len(self.passes)} over {names}: {', '.join(dict.fromkeys(does))}.")

    def _chunk(self, section: Section, accumulators: list[Accumulator], is_split: bool) -> None:
        """One chunk: its own accumulators, which hide or join those of the whole."""
        plan, writer, dim = self.plan, self.writer, self.plan.r_loops[0]
        writer.line(f"const int64_t {dim.name}_start = chunk * {plan.chunk};")
        last = f"{dim.name}_start + {plan.chunk}"
        if dim.size % plan.chunk:
            last = f"fs::minimum<int64_t>({last}, {dim.size})"
        writer.line(f"const int64_t {dim.name}_end = {last};")
        self._declare(accumulators, "_here")
        with ExitStack() as loops:
            self._r_loops(loops, section, accumulators, "_here")
        if not accumulators:
            return
        if not is_split:
            self._combine(accumulators, "_here", self._lane)
            return
        with self._each_column():
            for a in accumulators:
                for field in a.fields:
                    writer.line(f"{a.name}{field.suffix}_of_chunk[chunk]{self._lane} = "
                                f"{a.name}{field.suffix}_here{self._lane};")

    @contextmanager
    def _each_column(self) -> Iterator[None]:
        """The vector loop over a block's columns; in `rows`, nothing."""
        if self.plan.shape != "columns" or self.plan.inner is None:
            yield
            return
        self.writer.line("#pragma omp simd")
        with self.writer.block(_within(self.plan.inner)):
            yield

    def _declare(self, accumulators: list[Accumulator], suffix: str) -> None:
        writer, is_array = self.writer, self.plan.shape == "columns"
        for a in accumulators:
            for field in a.fields:
                name = f"{a.name}{field.suffix}{suffix}"
                text = f"{field.ctype} {name}[{self.plan.block}];" if is_array else (
                    f"{field.ctype} {name} = {field.start};")
                writer.line(text, a.statement.nodes)
        if is_array and accumulators:
            with self._each_column():
                for a in accumulators:
                    for field in a.fields:
                        writer.line(f"{a.name}{field.suffix}{suffix}{self._lane} = {field.start};", a.statement.nodes)

    def _declare_parts(self, accumulators: list[Accumulator]) -> None:
        columns = f"[{self.plan.block}]" if self.plan.shape == "columns" else ""
        for a in accumulators:
            for field in a.fields:
                self.writer.line(f"{field.ctype} {a.name}{field.suffix}_of_chunk[{self.plan.chunks}]{columns};",
                                 a.statement.nodes)

    def _combine(self, accumulators: list[Accumulator], other_suffix: str, other_place: str) -> None:
        with self._each_column():
            for a in accumulators:
                for text in a.combine("", self._lane, other_suffix, other_place):
                    self.writer.line(text, a.statement.nodes)

    def _r_loops(self, loops: ExitStack, section: Section, accumulators: list[Accumulator], suffix: str = "") -> None:
        plan, writer = self.plan, self.writer
        for place, dim in enumerate(plan.r_loops):
            if plan.shape == "rows" and place == len(plan.r_loops) - 1:
                self._simd(accumulators, suffix)
            loops.enter_context(writer.block(_within(dim) if place == 0 and plan.chunk else _over(dim)))
        if plan.shape == "columns":
            assert plan.inner is not None
            writer.line("#pragma omp simd")
            loops.enter_context(writer.block(_within(plan.inner)))
        elif not plan.r_loops:
            loops.enter_context(writer.block(""))
        by_number = {a.statement.number: a for a in accumulators}
        for statement in self._without_kept(section):
            accumulator = by_number.get(statement.number)
            if accumulator is None:
                self._statement(statement)
                continue
            operands = [self.names[number] for number in statement.operands]
            for text in accumulator.take(operands, suffix, self._lane):
                writer.line(text, statement.nodes)
        for number in plan.kept & {s.number for s in section.statements}:
            self.kept_so_far.add(number)

    def _simd(self, accumulators: list[Accumulator], suffix: str) -> None:
        """The pragma of the vector loop of a row; positions are found one by one."""
        if any(a.is_positional for a in accumulators):
            return
        by_operator: dict[str, list[str]] = {}
        for a in accumulators:
            names = {a.name: f"{a.name}{suffix}", f"{a.name}_is_nan": f"{a.name}_is_nan{suffix}"}
            for operator, name in a.simd_clauses():
                by_operator.setdefault(operator, []).append(names[name])
        clauses = "".join(f" reduction({op}: {', '.join(names)})" for op, names in by_operator.items())
        self.writer.line(f"#pragma omp simd{clauses}")

    # Values kept between passes.

    def _declare_kept(self, section: Section) -> None:
        for statement in section.statements:
            if statement.number in self.plan.kept and statement.number not in self.kept_so_far:
                numel = self.program.space.reduction_numel
                self.writer.line(f"{value_type(statement.dtype)} {statement.target}_row[{numel}];", statement.nodes)

    def _kept_place(self, statement: Statement) -> str:
        position = ""
        for dim in self.plan.r_loops:
            position = f"{dim.size} * ({position}) + {dim.name}" if position else dim.name
        return f"{statement.target}_row[{position or 0}]"

    def _without_kept(self, section: Section) -> list[Statement]:
        """What the pass still has to do: nothing that only leads to values which are kept."""
        own = {s.number: s for s in section.statements}
        needed: set[int] = set()
        for statement in reversed(section.statements):
            is_root = statement.op in ("store", "reduce")
            if is_root or statement.number in needed:
                needed.add(statement.number)
                if statement.number not in self.kept_so_far:
                    needed |= statement.needs
        return [s for number, s in own.items() if number in needed]

    # One statement.

    def _statement(self, statement: Statement) -> None:
        if statement.op == "constant":
            return
        nodes, writer = statement.nodes, self.writer
        if statement.op == "store":
            assert statement.buffer is not None
            value = statement.operands[0]
            writer.line(store_text(self.pointers[statement.buffer], self._offset(statement), self.names[value],
                                   self.statements[value].dtype, self.program.storage[statement.buffer]), nodes)
            return
        ctype = value_type(statement.dtype)
        if statement.number in self.kept_so_far:
            writer.line(f"const {ctype} {statement.target} = {self._kept_place(statement)};", nodes)
            return
        name = self.names[statement.number]
        declaration = name if name.endswith("]") else f"const {ctype} {name}"
        writer.line(f"{declaration} = {self._expression(statement)};", nodes)
        if statement.number in self.plan.kept:
            writer.line(f"{self._kept_place(statement)} = {name};", nodes)

    def _offset(self, statement: Statement) -> str:
        assert statement.index is not None
        return index_text(statement.index, self.names, self.narrow)

    def _expression(self, statement: Statement) -> str:
        operands = [self.names[number] for number in statement.operands]
        if statement.op == "load":
            assert statement.buffer is not None
            text = load_text(self.pointers[statement.buffer], self._offset(statement),
                             self.program.storage[statement.buffer])
            zero = literal(0, statement.dtype)
            return f"{operands[0]} ? {text} : {zero}" if operands else text
        if statement.op == "index_value":
            return convert(f"({self._offset(statement)})", torch.int64, statement.dtype)
        if statement.op == "to_dtype":
            return convert(operands[0], self.statements[statement.operands[0]].dtype, statement.dtype)
        if statement.op == "where":
            return f"{operands[0]} ? {operands[1]} : {operands[2]}"
        if statement.op in ("rand", "randn"):
            return f"fs::{statement.op}({operands[0]}, {self._offset(statement)})"
        return pointwise_text(statement, operands, self.statements[statement.operands[0]].dtype)


def _over(dim: Dim) -> str:
    return f"for (int64_t {dim.name} = 0; {dim.name} < {dim.size}; ++{dim.name})"


def _over_blocks(dim: Dim, block: int) -> str:
    return f"for (int64_t {dim.name}_start = 0; {dim.name}_start < {dim.size}; {dim.name}_start += {block})"


def _within(dim: Dim) -> str:
    return f"for (int64_t {dim.name} = {dim.name}_start; {dim.name} < {dim.name}_end; ++{dim.name})"


def _pointer(buffer: str, taken: set[str]) -> str:
    name = f"{identifier(buffer)}_ptr"
    while name in taken:
        name += "_"
    taken.add(name)
    return name

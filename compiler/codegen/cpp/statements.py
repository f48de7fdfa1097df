"""Print the statements of a kernel program as C++: loads, stores, expressions, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch

from compiler.codegen.cpp.collisions import keeps_apart
from compiler.codegen.cpp.conditions import MASK, indices_of_conditions
from compiler.codegen.cpp.kept import due_statements, sections_of
from compiler.codegen.cpp.ops import (
    convert,
    expression,
    index_text,
    literal,
    load_text,
    scatter_text,
    store_text,
    text_literal,
    value_type,
)
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.staging import (
    MOST_DRAWN,
    MOST_WIDE,
    Row,
    Staged,
    Tile,
    can_be_drawn,
    can_be_transposed,
    drawn,
    transposed,
    wide_accesses,
    widened,
)
from compiler.codegen.cpp.writer import Writer
from compiler.codegen.naming import identifier
from compiler.ir.index import Dim
from compiler.ir.ops import HALF_TYPES, RANDOM
from compiler.ir.size import text_of
from compiler.schedule.program.program import Section, Statement, closure, readers_of


class StatementPrinter:
    """Prints the statements of one plan. `names` holds what each value is called at the present point; the memory of
    the buffers `written_over` is that of another one too: C++ must not assume that their pointers are the only ones."""

    def __init__(self, plan: Plan, written_over: frozenset[str]) -> None:
        self.plan = plan
        self.written_over = written_over
        self.program = plan.program
        self.writer = Writer()
        self.statements = self.program.by_number
        self.names = {s.number: self._first_name(s) for s in self.program.statements}
        self.narrow = frozenset(s.number for s in self.program.statements if s.dtype != torch.int64)
        self.of_conditions = indices_of_conditions(self.program)
        self.kept_so_far: set[int] = set()
        self.sections = sections_of(self.program, plan.kept if plan.shape == "rows" else ())
        self.passes = [section for section in self.sections if section.level == "r"]
        self.shared = self._values_of_several_sections()
        #: Names of values, of pointers, and of all arrays around a loop.
        self._taken = {s.target for s in self.program.statements}
        buffers = (*self.program.reads, *self.program.writes)
        self.pointers = {name: self._free_name(f"{identifier(name)}_ptr") for name in buffers}
        self.readers = readers_of(self.program.statements)
        self.staged: dict[int, Staged] = {}

    def _first_name(self, statement: Statement) -> str:
        if statement.op == "field":
            return f"{self.statements[statement.operands[0]].target}_{statement.value}"
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
        return frozenset(n for n in shared if self.statements[n].op not in ("constant", "field"))

    @property
    def lane(self) -> str:
        """The element of a block's array that belongs to the present column; nothing in the other shapes."""
        inner = self.plan.inner
        return f"[{inner.name} - {inner.name}_start]" if self.plan.shape == "columns" and inner else ""

    def statement(self, statement: Statement) -> None:
        if statement.op in ("constant", "field") or self._is_unread(statement):
            return
        nodes, writer = statement.nodes, self.writer
        if statement.op == "store":
            writer.line(self._store(statement), nodes)
            return
        if statement.op == "check":
            condition, message = self.names[statement.operands[0]], text_literal(str(statement.value))
            writer.line(f"fs::check({condition}, {message});", nodes)
            return
        ctype = value_type(statement.dtype)
        if statement.number in self.kept_so_far:
            writer.line(f"const {ctype} {statement.target} = {self.kept_element(statement)};", nodes)
            return
        if self._is_copied(statement):
            pointer, offset = self._element(statement)
            writer.line(f"const uint16_t {statement.target} = {pointer}[{offset}].bits;", nodes)
            return
        name = self.names[statement.number]
        declaration = name if name.endswith("]") else f"const {ctype} {name}"
        expression = self._expression(statement)
        if statement.number in self.of_conditions:
            expression = f"({expression}) & {MASK}"
        writer.line(f"{declaration} = {expression};", nodes)
        if statement.number in self.plan.kept:
            writer.line(f"{self.kept_element(statement)} = {name};", nodes)

    def _store(self, statement: Statement) -> str:
        pointer, offset = self._element(statement)
        value, *masks = [self.names[number] for number in statement.operands]
        dtypes = self.statements[statement.operands[0]].dtype, self._element_dtype(statement)
        if self._is_copied(self.statements[statement.operands[0]]):
            text = f"{pointer}[{offset}].bits = {value};"
            return f"if ({masks[0]}) {text}" if masks else text
        if not statement.is_scatter:
            return store_text(pointer, offset, value, *dtypes)
        text = scatter_text(f"{pointer}[{offset}]", value, str(statement.value), *dtypes)
        return f"if ({masks[0]}) {text}" if masks else text

    def _is_copied(self, load: Statement) -> bool:
        """Whether a number of a half type is only stored again, as the bits that it has."""
        readers = self.readers[load.number]
        if load.op != "load" or load.operands or load.number in self.plan.kept or not readers:
            return False
        storage = self.program.dtype_of(load)
        return storage in HALF_TYPES and all(
            s.op == "store"
            and s.value in (None, "set")
            and s.operands[0] == load.number
            and self.program.dtype_of(s) == storage
            for s in readers
        )

    def simd(self, statements: Iterable[Statement], dim: Dim, clauses: str = "") -> None:
        """The pragma of a vector loop over `dim`, unless two lanes could update one element."""
        if keeps_apart(dim, statements):
            self.writer.line(f"#pragma omp simd{clauses}")

    def _element(self, statement: Statement) -> tuple[str, str]:
        """The array that a load or store goes to, and the element in it."""
        if (staged := self.staged.get(statement.number)) is not None:
            return staged.name, staged.element
        return self._pointer(statement), self._offset(statement)

    def _element_dtype(self, statement: Statement) -> torch.dtype:
        """What the elements of that array are."""
        staged = self.staged.get(statement.number)
        return self.program.dtype_of(statement) if staged is None else staged.dtype

    def _is_gathered(self, load: Statement) -> bool:
        """Whether the lanes of a vector load at indices that they have found each for itself."""
        vector = self.plan.inner or (self.plan.r_loops[-1] if self.plan.r_loops else None)
        if vector is None or load.index is None or load.buffer in self.program.writes or load.number in self.staged:
            return False
        numbers = closure([atom.value for atom in load.index.indirections], self.statements)
        indices = [self.statements[number].index for number in numbers]
        return any(index is not None and vector in index.dims for index in indices)

    def is_of_pairs(self, load: Statement) -> bool:
        """Whether a load under a condition takes one of two neighbours at each point of the vector loop, and a store
        leaves gaps there, as another one fills: GCC 12 makes wrong vectors of such pairs, of real and imaginary parts
        for one, where the condition is about the loop."""
        vector = self.plan.inner or (self.plan.r_loops[-1] if self.plan.r_loops else None)
        if load.op != "load" or not load.operands or load.index is None or vector is None:
            return False
        if load.number in self.staged or load.index.step(vector) not in (2, -2):
            return False
        stored = (s.index for s in self.program.statements if s.op == "store" and s.index is not None)
        return any(index.step(vector) not in (0, 1, -1) for index in stored)

    def _offset(self, statement: Statement) -> str:
        assert statement.index is not None
        return index_text(statement.index, self.names, self.narrow)

    def _expression(self, statement: Statement) -> str:
        operands = [self.names[number] for number in statement.operands]
        if statement.op == "load":
            storage = self._element_dtype(statement)
            pointer, offset = self._element(statement)
            pointer = f"fs::not_in_vectors({pointer})" if self.is_of_pairs(statement) else pointer
            text = load_text(pointer, offset, storage)
            if storage in HALF_TYPES and self._is_gathered(statement):
                text = f"fs::to_float(fs::gathered({self._pointer(statement)}, {self._offset(statement)}))"
            zero = literal(0, statement.dtype)
            return f"{operands[0]} ? {text} : {zero}" if operands else text
        if statement.op == "index_value":
            return convert(f"({self._offset(statement)})", torch.int64, statement.dtype)
        if (staged := self.staged.get(statement.number)) is not None:
            return f"{staged.name}[{staged.element}]"
        if statement.op in RANDOM:
            return f"fs::{statement.op}({operands[0]}, {self._offset(statement)})"
        source = self.statements[statement.operands[0]]
        return expression(statement, operands, source.dtype, self._is_clamped(source))

    def _is_clamped(self, value: Statement) -> bool:
        """Whether a float lies between two constants that int32 holds, or is NaN."""
        found: set[str] = set()
        while value.op in ("minimum", "maximum"):
            first, second = (self.statements[number] for number in value.operands)
            limit, rest = (first, second) if first.op == "constant" else (second, first)
            if isinstance(limit.value, int | float) and abs(limit.value) < 2**31:
                found.add(value.op)
            value = rest
        return len(found) == 2

    @contextmanager
    def knowing(self, statements: Iterable[Statement]) -> Iterator[None]:
        """These statements in the place of those of the same numbers."""
        before = self.statements, self.names, self.readers
        known = {statement.number: statement for statement in statements}
        self.readers = readers_of(known.values())
        self.statements = {**self.statements, **known}
        self.names = self.names | {number: self._first_name(s) for number, s in known.items()}
        yield
        self.statements, self.names, self.readers = before

    # What is staged around a loop.

    @contextmanager
    def preparing(self, statements: Sequence[Statement], row: Row) -> Iterator[None]:
        """Draw and convert what a loop over `row` asks for; the loop is what is written meanwhile. Where a loop inside
        of it says which element that is, there is no row to go along."""
        statements = [s for s in statements if s.index is None or self.plan.unrolled not in s.index.dims]
        others = {s.number for s in statements if s.number in self.kept_so_far or s.number in self.staged}
        found: list[Staged] = []
        for s in statements if isinstance(row.most, int) and row.most <= MOST_DRAWN else ():
            if s.number not in others and can_be_drawn(s, row.dim, self.statements):
                seed = self._expression(self.statements[s.operands[0]])
                name, numbers = self._free_name(f"{s.target}_drawn"), self._free_name(f"{s.target}_numbers")
                found.append(drawn(s, name, numbers, row, seed))
        is_short = isinstance(row.most, int) and row.most <= MOST_WIDE
        for s in wide_accesses(self.program, statements, row.dim) if is_short else ():
            if s.number not in others and not self._is_copy(s):
                found.append(widened(s, self._array_of(s, "_wide"), row, self._pointer(s)))
        with self._staging(found):
            yield

    @contextmanager
    def transposing(self, tile: Tile, statements: Iterable[Statement]) -> Iterator[None]:
        """One tile, between filling and emptying the arrays of what is transposed."""
        found = [
            transposed(s, self._array_of(s, "_transposed"), tile, self._pointer(s), self._element_dtype(s))
            for s in statements
            if can_be_transposed(self.program, s, tile.inner, tile.across, self.written_over)
        ]
        with self._staging(found):
            yield

    @contextmanager
    def _staging(self, found: Sequence[Staged]) -> Iterator[None]:
        for one in found:
            self.writer.line(one.declaration, one.statement.nodes)
            if one.statement.op != "store":
                self.writer.line(one.call, one.statement.nodes)
        self.staged |= {one.statement.number: one for one in found}
        yield
        for one in found:
            if one.statement.op == "store":
                self.writer.line(one.call, one.statement.nodes)
            del self.staged[one.statement.number]

    def _array_of(self, statement: Statement, ending: str) -> str:
        """The name of an array for a load or store."""
        base = statement.target if statement.op == "load" else str(statement.buffer)
        return self._free_name(f"{base}{ending}")

    def _free_name(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _pointer(self, statement: Statement) -> str:
        assert statement.buffer is not None
        return self.pointers[statement.buffer]

    def _is_copy(self, statement: Statement) -> bool:
        """Whether a load or store is one of those that move bits."""
        return self._is_copied(self.statements[statement.operands[0]] if statement.op == "store" else statement)

    def _is_unread(self, statement: Statement) -> bool:
        """Whether only statements have a value for an operand that are written without it: numbers that were drawn."""
        numbers = [reader.number for reader in self.readers[statement.number]]
        return bool(numbers) and all(n in self.staged and self.staged[n].statement.op in RANDOM for n in numbers)

    # Values kept between passes.

    def declare_kept(self, section: Section) -> None:
        for statement in section.statements:
            is_new = statement.number in self.plan.kept and statement.number not in self.kept_so_far
            if is_new and self.plan.kept[statement.number] is None:
                numel, ctype, name = self.program.space.reduction_numel, value_type(statement.dtype), statement.target
                array = f"{ctype} {name}_row[{numel}];"
                if not isinstance(numel, int):
                    array = f"const fs::Values<{ctype}> {name}_values({text_of(numel)});"
                    array += f" {ctype}* const {name}_row = {name}_values.first;"
                self.writer.line(array, statement.nodes)

    def kept_element(self, statement: Statement) -> str:
        if (store := self.plan.kept[statement.number]) is not None:
            pointer, offset = self._element(store)
            return f"{pointer}[{offset}]"
        position = ""
        for dim in self.plan.r_loops:
            position = f"({text_of(dim.size)}) * ({position}) + {dim.name}" if position else dim.name
        return f"{statement.target}_row[{position or 0}]"

    def is_scanned(self, statement: Statement) -> bool:
        return statement.op == "scan" and statement.number not in self.kept_so_far

    def without_kept(self, section: Section) -> list[Statement]:
        """What the pass still has to do."""
        return due_statements(section, self.kept_so_far)


def over(dim: Dim) -> str:
    return f"for (int64_t {dim.name} = 0; {dim.name} < {text_of(dim.size)}; ++{dim.name})"


def over_blocks(dim: Dim, block: int) -> str:
    return f"for (int64_t {dim.name}_start = 0; {dim.name}_start < {text_of(dim.size)}; {dim.name}_start += {block})"


def within(dim: Dim) -> str:
    return f"for (int64_t {dim.name} = {dim.name}_start; {dim.name} < {dim.name}_end; ++{dim.name})"


def between(dim: Dim, start: int, end: int, is_in_block: bool) -> str:
    """The points from `start` to `end`, or those of them that lie in the present block."""
    first, last = bounds_between(dim, start, end, is_in_block)
    return f"for (int64_t {dim.name} = {first}; {dim.name} < {last}; ++{dim.name})"


def bounds_between(dim: Dim, start: int, end: int, is_in_block: bool) -> tuple[int | str, int | str]:
    """Where these points begin and end."""
    if not is_in_block:
        return start, end
    first = f"fs::maximum<int64_t>({dim.name}_start, {start})" if start else f"{dim.name}_start"
    last = f"fs::minimum<int64_t>({dim.name}_end, {end})" if end != dim.size else f"{dim.name}_end"
    return first, last

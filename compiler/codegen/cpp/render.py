"""The C++ printer: a kernel program, laid out by its plan, as one function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

import torch

from compiler.codegen.cpp.across import AcrossPrinter
from compiler.codegen.cpp.conditions import DECLARATION
from compiler.codegen.cpp.functions import function_lines
from compiler.codegen.cpp.ops import HEADERS, columns_text, storage_type, value_type
from compiler.codegen.cpp.plan import ENOUGH_PIECES, UNROLLED, Plan, make_plan
from compiler.codegen.cpp.staging import Row, Tile
from compiler.codegen.cpp.statements import between, over, over_blocks, within
from compiler.codegen.naming import identifier, named_program
from compiler.codegen.rendered import Config, RenderedKernel
from compiler.ir.functions import records_of
from compiler.ir.index import Dim
from compiler.ir.ops import NAMED
from compiler.ir.size import SizeAtom, hint, known, text_of
from compiler.schedule.group import Group, parts_of
from compiler.schedule.program.build import program_of
from compiler.schedule.program.narrow import in_32_bits, without_ways_back
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.program.statements import statements_of
from compiler.schedule.tiles.loops import simplify_loops
from compiler.schedule.windows import over_windows

#: Elements of a window that are written out: compiling more takes longer than they are worth.
MOST_WRITTEN_OUT = 9
#: Points that a short vector loop takes at once, as many floats as the widest vectors have; and from where it is long.
LANES, LONG = 16, 512
#: Elements of memory between two neighbours of a window that still lie in one line of the cache, mostly.
FARTHEST_IN_WINDOW = 8


def render_cpp(
    group: Group, storage: dict[str, torch.dtype], written_over: frozenset[str] = frozenset()
) -> RenderedKernel:
    """The kernel of `group` as C++; `storage` gives the dtype of every buffer that it touches.

    `extern "C" void NAME(const T* a_ptr, ..., T* out_ptr, int64_t s0, ...)`: the parameters are the buffers that it
    reads, then those that it writes, as in `RenderedKernel.parameters`, then the sizes that differ from call to call.
    The parts of a batch are functions that it calls one after the other.
    Those of `written_over` share their memory with another one, element by element; all others have their own.
    """
    plans = [make_plan(_program(_simplified(part), storage), written_over) for part in parts_of(group)]
    if len(plans) > 1:
        return _render_batch(group.name, plans, written_over)
    (plan,) = plans
    printer = _KernelPrinter(plan, written_over)
    program = plan.program
    printer.head()
    printer.function(f'extern "C" void {identifier(program.name)}')
    config: Config = {"shape": plan.shape, "parallel": plan.parallel}
    config |= {name: size for name, size in (("block", plan.block), ("chunk", plan.chunk)) if size}
    config |= {"checks": 1} if program.has_check else {}
    updates = tuple(s.buffer for s in program.scatters if s.buffer is not None)
    source, origins = printer.writer.text, printer.writer.origins
    return RenderedKernel(program.name, "cpp", source, program.parameters, origins, config, updates, program.sizes)


def _simplified(group: Group) -> Group:
    """A part of a kernel with as few loops as possible. Windows of few elements that lie along memory are written out,
    as their loops are too short for vectors: these go along the results, as the lanes of a GPU do."""
    simple = simplify_loops(group)
    count = simple.space.reduction_numel
    if not isinstance(count, int) or not 1 < count <= MOST_WRITTEN_OUT or not _goes_along_memory(simple):
        return simple
    return over_windows(simple) or simple


def _goes_along_memory(group: Group) -> bool:
    """Whether neighbours in memory are read for one result, or what lies near (of a dilated window), and others for the
    next; but for rows of their own of more than vectors are loaded for at a time, which are transposed."""
    reads = [access.index for member in group.members for access in member.body.reads]
    (*outer, last), r = group.space.x or (Dim("none", 1),), group.space.r
    windows = [index for index in reads if not index.dims.isdisjoint({*outer, last})]
    steps = [abs(hint(index.step(last))) for index in windows]
    is_row = len(r) == 1 and all(step == 0 or step >= max(hint(r[0].size), UNROLLED + 1) for step in steps)
    near = range(1, FARTHEST_IN_WINDOW + 1)
    return not is_row and any(index.stride(dim) in near for index in windows for dim in r)


def _program(group: Group, storage: dict[str, torch.dtype]) -> Program:
    """Sums relative to another result of their row wait for it: a second pass over the row, which the cache holds."""
    statements = in_32_bits(statements_of(group), group.space.reduction_numel)
    return named_program(program_of(group, without_ways_back(statements, rounds=True), storage), group)


def _render_batch(name: str, plans: Sequence[Plan], written_over: frozenset[str]) -> RenderedKernel:
    printers = [_KernelPrinter(plan, written_over) for plan in plans]
    buffers = dict.fromkeys(buffer for printer in printers for buffer in printer.program.parameters)
    reads = frozenset(buffer for printer in printers for buffer in printer.program.reads)
    writes = {buffer: printer for printer in printers for buffer in printer.program.writes}
    parameters = (*(b for b in buffers if b in reads), *(b for b in buffers if b not in reads))
    first = printers[0]
    first.head([statement for printer in printers for statement in printer.program.statements])
    for number, printer in enumerate(printers, start=1):
        printer.function(f"static void part_{number}_{identifier(name)}")
        if printer is not first:
            first.writer.append(printer.writer)
        first.writer.line()
    owner = {buffer: printer for printer in printers for buffer in printer.program.parameters} | writes
    sizes = tuple(dict.fromkeys(size for plan in plans for size in plan.program.sizes))
    declared = [*(owner[buffer].parameter(buffer) for buffer in parameters), *map(_size_parameter, sizes)]
    first.writer.signature(f'extern "C" void {identifier(name)}', declared)
    with first.writer.indented():
        for number, printer in enumerate(printers, start=1):
            arguments = [owner[buffer].pointers[buffer] for buffer in printer.program.parameters]
            arguments += [size.name for size in printer.program.sizes]
            first.writer.line(f"part_{number}_{identifier(name)}({', '.join(arguments)});")
    first.writer.line("}")
    is_parallel = any(plan.parallel != "no" for plan in plans)
    config: Config = {"shape": "batch", "parallel": "x" if is_parallel else "no"}
    config |= {"checks": 1} if any(plan.program.has_check for plan in plans) else {}
    return RenderedKernel(name, "cpp", first.writer.text, parameters, first.writer.origins, config, sizes=sizes)


def _size_parameter(size: SizeAtom) -> str:
    return f"const int64_t {size.name}"


class _KernelPrinter(AcrossPrinter):
    """The function, and its loops over x."""

    def parameter(self, buffer: str) -> str:
        constant = "" if buffer in self.program.writes else "const "
        alone = "" if buffer in self.written_over else "__restrict__ "
        return f"{constant}{storage_type(self.program.storage[buffer])}* {alone}{self.pointers[buffer]}"

    def head(self, statements: Sequence[Statement] | None = None) -> None:
        """The headers, and the named functions that the statements (this kernel's own unless given) call."""
        called = self.program.statements if statements is None else statements
        functions = [(s.op, s.dtype) for s in called if s.op in NAMED]
        ops = {s.op for s in called}.union(i.op for record in records_of(functions) for i in record.instructions)
        for header in ("fusionscope.h", *sorted({HEADERS[op] for op in ops & HEADERS.keys()})):
            self.writer.line(f'#include "{header}"')
        self.writer.line()
        for line in function_lines(functions):
            self.writer.line(line)

    def function(self, head: str) -> None:
        """The function; `head` is what stands before its parameters."""
        writer, program = self.writer, self.program
        for line in self._description():
            writer.comment(line)
        parameters = [self.parameter(name) for name in self.program.parameters]
        parameters += map(_size_parameter, program.sizes)
        writer.signature(head, parameters)
        with writer.indented():
            if self.of_conditions:
                writer.line(DECLARATION)
            if self.plan.shape in ("pointwise", "scatter"):
                self._pointwise()
            elif self.plan.parts:
                self.parts()
            else:
                self.each_row()
        writer.line("}")

    def _description(self) -> list[str]:
        plan, space = self.plan, self.program.space
        loops = {"pointwise": "vectors along {}", "rows": "vectors along the reduction", "columns": "vectors along {}"}
        if self.program.scans and not any(section.reductions for section in self.program.sections):
            is_in_lanes = all(self.is_in_lanes(section) for section in self.passes if section.scans)
            loops["rows"] = "vectors along the scan" if is_in_lanes else "step by step along the scan"
        loops["scatter"] = loops["pointwise"] if plan.inner else "one after the other"
        text = loops[plan.shape].format(plan.inner.name if plan.inner else "one point")
        if any(self.is_of_pairs(statement) for statement in self.program.statements):
            text = text.replace("vectors along", "one by one along")
        parallel = {
            "no": "one thread",
            "x": "threads over x",
            "chunks": "threads over chunks of the reduction",
            "parts": "threads over parts of x",
        }
        return [f"{self.program.name} over {space}: {text}, {parallel[plan.parallel]}."]

    def _pointwise(self) -> None:
        """Points one by one, those of a scatter in the order of its loops where stores may meet."""
        plan = self.plan
        with ExitStack() as loops:
            cut = [dim for dim in (plan.across, plan.inner) if dim is not None and plan.block]
            heads = [*map(over, plan.outer), *(over_blocks(dim, plan.block) for dim in cut)]
            sizes = [hint(dim.size) for dim in plan.outer] + [-(-hint(dim.size) // plan.block) for dim in cut]
            if not heads and plan.parallel == "x" and plan.inner is not None:
                self.writer.line(f"#pragma omp parallel for simd schedule(static){plan.worth_threads}")
                loops.enter_context(self.writer.block(over(plan.inner)))
                self._points(loops)
                return
            self._nest(loops, heads, sizes)
            for dim in cut:
                self.block_end(dim, plan.block)
            for dim in plan.in_order:
                loops.enter_context(self.writer.block(over(dim)))
            if plan.inner is None:
                self._sections_at_x()
            elif plan.across is not None:
                self._square(plan.inner, plan.across)
            elif len(plan.pieces) > 1:
                self._pieces(plan.inner)
            else:
                row = Row(plan.inner, bool(plan.block), plan.block or plan.inner.size)
                loops.enter_context(self.preparing(self.program.statements, row))
                statements, size = self.program.statements, plan.inner.size
                if isinstance(size, int):
                    loops.enter_context(self._vectors(plan.inner, 0, size, statements))
                else:
                    self.writer.line("#pragma omp simd")
                    loops.enter_context(self.writer.block(within(plan.inner) if plan.block else over(plan.inner)))
                self._points(loops)

    @contextmanager
    def _vectors(self, dim: Dim, start: int, end: int, statements: Sequence[Statement]) -> Iterator[None]:
        """The vector loop over some points, or those of the present block. What is left beside whole vectors takes as
        long as many of these where it goes one by one; so the last points of a short loop are a whole vector, too,
        which computes some of them twice. That must not read what it has written or add to it, nor leave gaps between
        its elements, of which GCC takes the last ones one by one."""
        is_even = all(s.index is None or s.index.stride(dim) in (0, 1) for s in statements)
        is_short = LANES < end - start < LONG and (end - start) % LANES != 0
        with ExitStack() as loops:
            head = between(dim, start, end, bool(self.plan.block))
            if is_short and is_even and not (self.plan.block or self.written_over or self.program.scatters):
                block, first = f"{dim.name}_block", f"{dim.name}_first"
                blocks = f"for (int64_t {block} = {start}; {block} < {end}; {block} += {LANES})"
                loops.enter_context(self.writer.block(blocks))
                self.writer.line(f"const int64_t {first} = fs::minimum<int64_t>({block}, {end - LANES});")
                head = f"for (int64_t {dim.name} = {first}; {dim.name} < {first} + {LANES}; ++{dim.name})"
            self.writer.line("#pragma omp simd")
            loops.enter_context(self.writer.block(head))
            yield

    def _points(self, loops: ExitStack) -> None:
        """What happens at each point of the vector loop."""
        if self.plan.unrolled is not None:
            loops.enter_context(self.writer.block(over(self.plan.unrolled)))
        self._sections_at_x()

    def _pieces(self, inner: Dim) -> None:
        for piece in self.plan.pieces:
            is_one_point = piece.end - piece.start == 1 and not self.plan.block
            points = (
                self.writer.block("")
                if is_one_point
                else self._vectors(inner, piece.start, piece.end, piece.statements)
            )
            with points, self.knowing(piece.statements):
                for statement in piece.statements:
                    self.statement(statement)

    def _square(self, inner: Dim, across: Dim) -> None:
        """One square of a transposing kernel, between filling and emptying the arrays of what is transposed."""
        name, block = across.name, self.plan.block
        tile = Tile(inner, across, block, block, f"{name}_start", f"{name}_end")
        with self.transposing(tile, self.program.statements), self.writer.block(within(across)):
            self.writer.line("#pragma omp simd")
            with self.writer.block(within(inner)):
                self._sections_at_x()

    def _sections_at_x(self) -> None:
        for section in self.program.sections:
            for statement in section.statements:
                self.statement(statement)

    def each_row(self) -> None:
        """Rows one after the other, or blocks of columns: all of them, or those of the present part."""
        plan, inner, block = self.plan, self.plan.inner, max(self.plan.block, 1)
        heads, sizes = [over(dim) for dim in plan.outer], [hint(dim.size) for dim in plan.outer]
        end = None
        if inner is not None:
            heads.append(over_blocks(inner, block))
            sizes.append(-(-hint(inner.size) // block))
        if plan.parts and plan.outer:
            self._bounds_of_part(plan.outer[0], "start", "end")
            heads[0] = within(plan.outer[0])
        elif plan.parts and inner is not None:
            self._bounds_of_part(inner, "first", "last")
            start, end = f"{inner.name}_start", f"{inner.name}_last"
            heads[0] = f"for (int64_t {start} = {inner.name}_first; {start} < {end}; {start} += {block})"
        with ExitStack() as loops:
            self._nest(loops, heads, sizes)
            if inner is None:
                self._sections_of_a_row()
                return
            self.block_end(inner, block, end)
            self._sections_of_columns(inner)

    def _bounds_of_part(self, dim: Dim, first: str, last: str) -> None:
        """Where a part of the loop `dim` begins and ends, by names of these endings."""
        points = -(-known(dim.size) // self.plan.parts)
        first, last = f"{dim.name}_{first}", f"{dim.name}_{last}"
        self.writer.line(f"const int64_t {first} = {points} * part;")
        self.writer.line(f"const int64_t {last} = fs::minimum<int64_t>({first} + {points}, {dim.size});")

    def _sections_of_a_row(self) -> None:
        for section in self.sections:
            if section.level == "x":
                for statement in section.statements:
                    self.statement(statement)
            else:
                self.run_pass(section)

    def _sections_of_columns(self, inner: Dim) -> None:
        """What happens at each block of columns."""
        with ExitStack() as tiles:
            if self.plan.has_short_rows:
                (row,), block = self.plan.r_loops, self.plan.block
                tile = Tile(inner, row, block, self.plan.tile, "0", text_of(row.size))
                tiles.enter_context(self.transposing(tile, self.program.statements))
            self._sections_in_order(inner)

    def _sections_in_order(self, inner: Dim) -> None:
        for section in self.program.sections:
            if section.level == "r":
                self.run_pass(section)
                continue
            computed = [s for s in section.statements if s.op not in ("constant", "field")]
            for statement in computed:
                if statement.number in self.shared:
                    self.writer.line(columns_text(value_type(statement.dtype), statement.target, self.plan.block))
                    self.names[statement.number] = f"{statement.target}{self.lane}"
            if computed:
                with self.gathering(computed):
                    self.simd(computed, inner)
                    with self.writer.block(within(inner)):
                        for statement in computed:
                            self.statement(statement)

    def _nest(self, loops: ExitStack, heads: list[str], sizes: list[int]) -> None:
        """Enter the loops, as many of the outer ones together in parallel as are worth it."""
        if self.plan.parallel == "x" and heads:
            together = next((n for n in range(1, len(sizes)) if prod(sizes[:n]) >= ENOUGH_PIECES), len(sizes))
            collapse = f" collapse({together})" if together > 1 else ""
            self.writer.line(f"#pragma omp parallel for{collapse} schedule(static){self.plan.worth_threads}")
        for head in heads:
            loops.enter_context(self.writer.block(head))

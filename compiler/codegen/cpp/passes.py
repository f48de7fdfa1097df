"""One pass over the reduction loops: accumulators, chunks, the vector loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import torch

from compiler.codegen.cpp.lanes import LanePrinter, Lanes, lanes_of, needs_lanes
from compiler.codegen.cpp.ops import columns_text
from compiler.codegen.cpp.pieces import Piece, pieces_of
from compiler.codegen.cpp.reductions import Accumulator, fits_one_number, variables_of
from compiler.codegen.cpp.staging import MOST_CACHED, ROW_BLOCK, Row, Tile, wide_accesses
from compiler.codegen.cpp.statements import between, bounds_between, over, over_blocks, within
from compiler.ir.index import Dim
from compiler.ir.size import hint, is_multiple, text_of
from compiler.schedule.program.program import Section, Statement


class PassPrinter(LanePrinter):
    """Prints the passes of a kernel, one after the other; what one leaves, later ones read under `names`."""

    #: Those of the present pass.
    accumulators: Sequence[Accumulator] = ()

    def run_pass(self, section: Section) -> None:
        """One pass: accumulators, the loops, what the chunks' results come to, and what is made of that."""
        plan, writer = self.plan, self.writer
        self.accumulators = [self._accumulator(s) for s in section.reductions]
        self._pass_comment(section)
        self.declare_kept(section)
        self.start_scans(section)
        is_split = plan.parallel == "chunks" and plan.is_cut
        self._declare("")
        if not plan.is_cut or self._is_row_in_wide_blocks(section):
            with ExitStack() as loops:
                self._r_loops(loops, section)
        else:
            if is_split:
                self._declare_parts()
                writer.line(f"#pragma omp parallel for schedule(static){plan.worth_threads}")
            with writer.block(f"for (int64_t chunk = 0; chunk < {plan.chunks}; ++chunk)"):
                self._chunk(section, is_split)
            if is_split and self.accumulators:
                with writer.block(f"for (int64_t chunk = 0; chunk < {plan.chunks}; ++chunk)"):
                    self._combine("_of_chunk", f"[chunk]{self.lane}")
        self.kept_so_far |= plan.kept.keys() & {s.number for s in section.statements}
        for accumulator in self.accumulators:
            for text in accumulator.finish():
                writer.line(text, accumulator.statement.nodes)
            self.names[accumulator.statement.number] = accumulator.result(self.lane)

    @contextmanager
    def gathering(self, statements: Iterable[Statement]) -> Iterator[None]:
        """Around a vector loop over columns: what is gathered across them (see `across.py`)."""
        yield

    def _accumulator(self, statement: Statement) -> Accumulator:
        value, *position = (self.statements[number] for number in statement.operands)
        is_one_number = bool(position) and fits_one_number(value.dtype, position[0])
        return Accumulator(statement, value.dtype, self.plan.shape == "rows", is_one_number)

    def _pass_comment(self, section: Section) -> None:
        names = ", ".join(dim.name for dim in self.plan.r_loops) or "one point"
        does = [str(s.value) for s in section.reductions] + [
            f"running {s.value}" for s in section.scans if self.is_scanned(s)
        ]
        does += [f"store {s.buffer}" for s in section.statements if s.op == "store"]
        number = self.passes.index(section) + 1
        self.writer.comment(f"Pass {number} of {len(self.passes)} over {names}: {', '.join(dict.fromkeys(does))}.")

    def _bounds_of_chunk(self) -> None:
        plan, writer, dim = self.plan, self.writer, self.plan.r_loops[0]
        if plan.is_chunk_one_point:
            writer.line(f"const int64_t {dim.name} = chunk;")
            return
        chunk: int | str = plan.chunk
        if plan.shares:
            chunk = f"{dim.name}_share"
            writer.line(f"const int64_t {chunk} = ({text_of(dim.size + (plan.shares - 1))}) / {plan.shares};")
        writer.line(f"const int64_t {dim.name}_start = chunk * {chunk};")
        self.block_end(dim, chunk)

    def block_end(self, dim: Dim, block: int | str, end: str | None = None) -> None:
        """Where the present block of a loop ends; not all of them need be whole. The loop goes to `end`, if not through
        all points."""
        last = f"{dim.name}_start + {block}"
        if end is not None or isinstance(block, str) or not is_multiple(dim.size, block):
            last = f"fs::minimum<int64_t>({last}, {end or text_of(dim.size)})"
        self.writer.line(f"const int64_t {dim.name}_end = {last};")

    def _chunk(self, section: Section, is_split: bool) -> None:
        """One chunk: its own accumulators, which hide or join those of the whole."""
        self._bounds_of_chunk()
        self._declare("_here")
        with ExitStack() as loops:
            self._r_loops(loops, section, "_here")
        if self.accumulators and not is_split:
            self._combine("_here", self.lane)
        elif self.accumulators:
            with self.each_column():
                for one in variables_of(self.accumulators):
                    self.writer.line(f"{one.name}_of_chunk[chunk]{self.lane} = {one.name}_here{self.lane};")

    def _declare(self, suffix: str) -> None:
        variables, block = variables_of(self.accumulators, suffix), self.plan.block
        is_array = self.plan.shape == "columns"
        for one in variables:
            text = columns_text(one.ctype, one.name, block) if is_array else f"{one.ctype} {one.name} = {one.start};"
            self.writer.line(text, one.nodes)
        if is_array and variables:
            with self.each_column():
                for one in variables:
                    self.writer.line(f"{one.name}{self.lane} = {one.start};", one.nodes)

    def _declare_parts(self) -> None:
        columns = f"[{self.plan.block}]" if self.plan.shape == "columns" else ""
        for one in variables_of(self.accumulators, "_of_chunk"):
            self.writer.line(f"{one.ctype} {one.name}[{self.plan.chunks}]{columns};", one.nodes)

    def _combine(self, other_suffix: str, other_element: str) -> None:
        with self.each_column():
            for a in self.accumulators:
                for text in a.combine("", self.lane, other_suffix, other_element):
                    self.writer.line(text, a.statement.nodes)

    def _r_loops(self, loops: ExitStack, section: Section, suffix: str = "") -> None:
        plan, writer = self.plan, self.writer
        lanes = self._lanes_of_pass(section)
        if lanes is not None:
            variables = variables_of(self.accumulators, suffix)
            self.each_array(self.declare_array, lanes, variables)
            loops.callback(self.each_array, self.join_array, lanes, variables)
        for dim in plan.r_loops[1:] if plan.is_chunk_one_point else plan.r_loops:
            is_within = plan.is_cut and dim == plan.r_loops[0]
            if plan.tile and not plan.has_short_rows and dim == plan.r_loops[-1]:
                self._enter_tile(loops, section, dim)
                continue
            if plan.shape == "rows" and dim == plan.r_loops[-1]:
                if len(pieces := self._pieces_of_row(section, dim)) > 1:
                    self._row_in_pieces(pieces, dim, suffix, lanes)
                    return
                is_in_blocks = lanes is None and self._is_row_in_wide_blocks(section)
                if is_in_blocks:
                    self._enter_wide_block(loops, section, dim)
                else:
                    self._prepare_row(loops, self.without_kept(section), dim)
                if lanes is not None:
                    self._row_in_lanes(section, lanes, self._bounds_of_loop(dim), suffix)
                    return
                if self.is_in_lanes(section):
                    self.simd_of_scans(section)
                else:
                    self._simd(suffix, self.without_kept(section))
                if is_in_blocks:
                    loops.enter_context(writer.block(within(dim)))
                    continue
            loops.enter_context(writer.block(within(dim) if is_within else over(dim)))
        if plan.shape == "columns":
            assert plan.inner is not None
            loops.enter_context(self.preparing(self.without_kept(section), Row(plan.inner, True, plan.block)))
            loops.enter_context(self.gathering(section.statements))
            self.simd(section.statements, plan.inner)
            loops.enter_context(writer.block(within(plan.inner)))
        elif not plan.r_loops:
            loops.enter_context(writer.block(""))
        if self.is_in_lanes(section):
            self.advance_in_lanes(section)
        else:
            self._one_point(section, suffix)

    def _bounds_of_loop(self, dim: Dim) -> tuple[int | str, int | str]:
        """Where a reduction loop begins and ends."""
        if self.plan.is_cut and dim == self.plan.r_loops[0]:
            return f"{dim.name}_start", f"{dim.name}_end"
        return 0, dim.size if isinstance(dim.size, int) else text_of(dim.size)

    def _prepare_row(self, loops: ExitStack, statements: Sequence[Statement], dim: Dim) -> None:
        """Draw and convert beforehand what the innermost loop asks for; nothing where the kernel computes how long a
        chunk is, since an array for it needs a length."""
        is_within = self.plan.is_cut and dim == self.plan.r_loops[0]
        if not (is_within and self.plan.shares):
            most = self.plan.chunk if is_within else dim.size
            loops.enter_context(self.preparing(statements, Row(dim, is_within, most)))

    def _enter_tile(self, loops: ExitStack, section: Section, dim: Dim) -> None:
        """The innermost loop of a pass over columns, in tiles of what runs along it."""
        plan, writer = self.plan, self.writer
        assert plan.inner is not None
        start, end = self._bounds_of_loop(dim)
        first, last = f"{dim.name}_tile", f"{dim.name}_tile_end"
        loops.enter_context(writer.block(f"for (int64_t {first} = {start}; {first} < {end}; {first} += {plan.tile})"))
        writer.line(f"const int64_t {last} = fs::minimum<int64_t>({first} + {plan.tile}, {end});")
        tile = Tile(plan.inner, dim, plan.block, plan.tile, first, last)
        loops.enter_context(self.transposing(tile, self.without_kept(section)))
        head = f"for (int64_t {dim.name} = {first}; {dim.name} < {last}; ++{dim.name})"
        loops.enter_context(writer.block(head))

    def _is_row_in_wide_blocks(self, section: Section) -> bool:
        """Whether the arrays of a whole row that is converted, or of a chunk of it, would not stay in the first-level
        cache. What sums up takes each at once, since the lanes of its vectors are joined at the end of each loop."""
        plan = self.plan
        is_shared = plan.is_cut and (plan.parallel == "chunks" or len(plan.r_loops) > 1)
        if section.reductions or section.scans or plan.shape != "rows" or not plan.r_loops or is_shared:
            return False
        row = plan.r_loops[-1]
        if len(self._pieces_of_row(section, row)) > 1:
            return False
        arrays = len(wide_accesses(self.program, self.without_kept(section), row))
        return hint(row.size) * arrays * torch.float32.itemsize > MOST_CACHED

    def _enter_wide_block(self, loops: ExitStack, section: Section, dim: Dim) -> None:
        loops.enter_context(self.writer.block(over_blocks(dim, ROW_BLOCK)))
        self.block_end(dim, ROW_BLOCK)
        loops.enter_context(self.preparing(self.without_kept(section), Row(dim, True, ROW_BLOCK)))

    def _pieces_of_row(self, section: Section, dim: Dim) -> tuple[Piece, ...]:
        """What the innermost loop of a pass is cut into, where a condition changes on its way."""
        if section.scans:
            return ()
        own = {s.number for s in self.without_kept(section)}
        last = self.program.sections.index(section)
        before = [s for one in self.program.sections[: last + 1] for s in one.statements]
        return pieces_of(list({s.number: s for s in before}.values()), dim, own)

    def _row_in_pieces(self, pieces: tuple[Piece, ...], dim: Dim, suffix: str, lanes: Lanes | None) -> None:
        is_in_chunk = self.plan.is_cut and dim == self.plan.r_loops[0]
        for piece in pieces:
            section = Section("r", piece.statements)
            first, last = bounds_between(dim, piece.start, piece.end, is_in_chunk)
            with ExitStack() as block:
                block.enter_context(self.knowing(piece.statements))
                if lanes is not None:
                    if is_in_chunk:
                        block.enter_context(self.writer.block(""))
                        self.writer.line(f"const int64_t {dim.name}_first = {first}, {dim.name}_last = {last};")
                        first, last = f"{dim.name}_first", f"{dim.name}_last"
                    self._row_in_lanes(section, lanes, (first, last), suffix)
                    continue
                if piece.end - piece.start > 1:
                    self._simd(suffix, piece.statements)
                block.enter_context(self.writer.block(between(dim, piece.start, piece.end, is_in_chunk)))
                self._one_point(section, suffix)

    # Reductions of a row in lanes.

    def _lanes_of_pass(self, section: Section) -> Lanes | None:
        if not needs_lanes(self.accumulators) or self.is_in_lanes(section):
            return None
        statements = [s for s in self.without_kept(section) if s.number not in self.kept_so_far]
        itemsize = max(8 if a.is_one_number else a.held.itemsize for a in self.accumulators)
        lanes = lanes_of(self.plan, statements, max(itemsize, torch.float32.itemsize))
        is_in_pieces = lanes is not None and len(self._pieces_of_row(section, lanes.dim)) > 1
        return replace(lanes, rest=0) if lanes is not None and is_in_pieces else lanes

    def _row_in_lanes(self, section: Section, lanes: Lanes, bounds: tuple[int | str, int | str], suffix: str) -> None:
        statements = self.without_kept(section)
        self.loop_in_lanes(
            lanes,
            bounds,
            lambda ending, element: self._one_point(section, f"{suffix}{ending}", element),
            lambda: self.simd(statements, lanes.dim),
        )

    def _one_point(self, section: Section, suffix: str, element: str | None = None) -> None:
        """What happens at one point; `element` is the element of the accumulators, by default that of the column."""
        by_number = {a.statement.number: a for a in self.accumulators}
        for statement in self.without_kept(section):
            accumulator = by_number.get(statement.number)
            if self.is_scanned(statement):
                self.advance(self.running(statement))
                continue
            if accumulator is None:
                self.statement(statement)
                continue
            operands = [self.names[number] for number in statement.operands]
            for text in accumulator.take(operands, suffix, self.lane if element is None else element):
                self.writer.line(text, statement.nodes)

    def _simd(self, suffix: str, statements: Sequence[Statement]) -> None:
        """The pragma of the vector loop of a row. Positions are found one by one, and so goes a scan; what depends on
        the order of elements has lanes, or is taken in order."""
        if any(a.is_positional for a in self.accumulators) or any(map(self.is_scanned, statements)):
            return
        if needs_lanes(self.accumulators):
            return
        by_operator: dict[str, list[str]] = {}
        for one in variables_of(self.accumulators, suffix):
            by_operator.setdefault(one.operator, []).append(one.name)
        clauses = "".join(f" reduction({op}: {', '.join(names)})" for op, names in by_operator.items())
        self.simd(statements, self.plan.r_loops[-1], clauses)

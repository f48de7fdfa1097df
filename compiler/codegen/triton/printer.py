"""The text of one Triton kernel, printed from its plan.

The text is a complete module: imports, the helpers that the kernel calls, and one `@triton.jit` function. Shapes are
literals in it; block sizes are `constexpr` parameters, so that a tuner may vary them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.codegen.naming import identifier
from compiler.codegen.rendered import RenderedKernel, launch_config
from compiler.codegen.triton.module import module_head
from compiler.codegen.triton.reductions.across import Gathering
from compiler.codegen.triton.reductions.reducing import Reductions
from compiler.codegen.triton.reductions.scans import Scans
from compiler.codegen.triton.reductions.states import States
from compiler.codegen.triton.values.accesses import loads_first
from compiler.codegen.triton.values.interleaved import interleaved_stores, store_of_row
from compiler.codegen.triton.values.random import SUFFIXES
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer, function_head
from compiler.ir.size import SizeAtom, text_of
from compiler.schedule.group import loops_text
from compiler.schedule.program.program import Program, Section, Statement
from compiler.schedule.tiles.plan import (
    Axis,
    LookBackPlan,
    Parts,
    PersistentPlan,
    Plan,
    SharedRowPlan,
    WholeRows,
)


class KernelPrinter:
    """Prints one plan: the frame of the kernel, its loops and its reductions. `program_id` is the text of the number of
    the program, which a kernel that is a part of another one is given."""

    #: Points of r from one program of a row to the next.
    share = "RBLOCK"

    def __init__(self, plan: Plan, program_id: str = "tl.program_id(0)") -> None:
        self.plan = plan
        self.program_id = program_id
        self.program: Program = plan.program
        self.vectors = plan.vectors
        self.printer = StatementPrinter(plan)
        self.writer = Writer(indent=1)
        self.reductions = Reductions(self.printer, self.writer)
        self.states = States(self.printer, self.writer, self.reductions.filled)
        self.scans = Scans(plan, self.printer, self.writer)
        self.gathering = self.gathering_of(plan.rows_in_turn)
        self.is_wide = plan.needs_wide_offsets

    def reducer(self, statement: Statement) -> Reductions | States:
        """What prints a reduction."""
        return self.states if States.holds(statement) else self.reductions

    def gathering_of(self, parts: Parts | None) -> Gathering | None:
        if parts is None:
            return None
        return Gathering(self.plan, parts, self.printer, self.writer, self.reductions.kind_of)

    @property
    def scratch(self) -> dict[str, int]:
        """What a launch needs to know of memory and counters that programs share."""
        return self.gathering.config if self.gathering is not None else {}

    # The whole -----------------------------------------------------------------------------------------------

    def kernel(self) -> RenderedKernel:
        program, plan = self.program, self.plan
        self.print_body()
        arguments = ["workspace_ptr", "counters_ptr"] if "workspace_bytes" in self.scratch else []
        arguments += [f"{atom.name}: tl.int64" for atom in program.sizes]
        body = self.writer.text()
        text = module_head(body, self.printer.functions) + self.definition(arguments, program.sizes)
        lines = self.writer.numbered(text.count("\n"))
        config = launch_config(self.blocks, plan.num_warps, plan.grid, plan.label, checks=program.has_check)
        if plan.most_registers:
            config["maxnreg"] = plan.most_registers
        config |= self.scratch
        updates = tuple(s.buffer for s in program.scatters if s.buffer is not None)
        source, name = text + body, identifier(program.name)
        parameters, sizes = program.parameters, program.sizes
        return RenderedKernel(name, "triton", source, parameters, lines, config, updates, sizes, plan.grid)

    @property
    def blocks(self) -> dict[str, int]:
        return {axis.block_name: axis.block for axis in self.vectors}

    def print_body(self) -> None:
        """Fill the writer."""
        self.print_indices()
        self.print_rows()

    def print_rows(self) -> None:
        """What follows the indices."""
        if self.gathering is not None:
            self._rows_of_a_part(self.gathering)
        else:
            self.print_sections(self.program.sections)

    def definition(self, more: Sequence[str], sizes: Sequence[SizeAtom] = ()) -> str:
        """The function down to its docstring; it takes the buffers, `more`, and the block sizes. The host gives it
        `sizes`, which are among `more`."""
        arguments = [self.printer.pointer(name) for name in self.program.parameters]
        arguments += [*more, *(f"{name}: tl.constexpr" for name in self.blocks)]
        return function_head(self.program.name, arguments, *self._paragraphs(), sizes=sizes)

    @property
    def how(self) -> str:
        """How a program goes through r."""
        ways = {"persistent": ", all of it in registers", "looped": ", a block at a time"}
        return ways.get(self.plan.label, "")

    def _paragraphs(self) -> tuple[str, str]:
        space = self.program.space
        names = list(dict.fromkeys(node for s in self.program.statements for node in s.nodes))
        kinds = {s.op: None for s in self.program.statements if s.op in ("reduce", "scan")}
        does = " and ".join({"reduce": "reduces over", "scan": "scans along"}[kind] for kind in kinds) or "runs over"
        how = self.how + (f", and gathers across x in {self.gathering.parts.count} parts" if self.gathering else "")
        loops = f"For {loops_text(space.x)}" if space.x else "For one point"
        loops += f", {does} {loops_text(space.r)}{how}" if space.r else ""
        return f"{loops}.", f"Computes {', '.join(names)}."

    # Index variables -----------------------------------------------------------------------------------------

    def print_indices(self) -> None:
        """Start of the kernel: which point of the loops each lane works on."""
        outer = [axis for axis in self.plan.axes if axis.name != "r"]
        program_id = self.program_id + (".to(tl.int64)" if self.is_wide else "")
        if self.plan.rows_in_turn is not None:
            self._first_rows(self.plan.rows_in_turn, program_id)
        elif len(outer) == 2:
            self.writer.line(f"pid = {program_id}")
            blocks = _blocks_text(outer[1])
            self.print_axis(outer[0], f"(pid // {blocks})")
            self.print_axis(outer[1], f"(pid % {blocks})")
        elif outer[0].dims:
            self.print_axis(outer[0], program_id)
        if isinstance(self.plan, PersistentPlan):
            self.print_axis(self.plan.axes[-1], "")

    def _first_rows(self, parts: Parts, program_id: str) -> None:
        """Which rows a program takes."""
        self.writer.line(f"part = {program_id}")
        self.writer.line(f"x_first = part * {parts.rows}")
        self.writer.line(f"x_last = tl.minimum(x_first + {parts.rows}, {self.plan.axes[0].numel})")

    def print_axis(self, axis: Axis, block: str) -> None:
        """The flat index along an axis, its mask, and its loop variables; where random numbers are drawn for several
        lanes at a time, the same for the first of each of those."""
        is_single = len(axis.dims) == 1 and (not isinstance(self.plan, SharedRowPlan) or axis.name != "x")
        flat = axis.dims[0].name if is_single else f"{axis.name}_index"
        lanes = f"tl.arange(0, {axis.block_name}){self._spread(axis)}"
        self.writer.line(f"{flat} = {self._indices(axis, block, lanes)}")
        if not axis.is_exact and not axis.is_scalar:
            self.writer.line(f"{axis.name}_mask = {self.bounded(axis, flat, lanes)}")
        if not is_single:
            self._unflatten(axis, flat)
        if axis != next((axis for axis in reversed(self.vectors) if axis.block > 1), None):
            return
        for many in sorted(set(self.printer.together.values())):
            lanes = f"{many} * tl.arange(0, {axis.block_name} // {many}){self._spread(axis)}"
            self.writer.line(f"{flat}{SUFFIXES[many]} = {self._indices(axis, block, lanes)}")
            if not is_single:
                self._unflatten(axis, flat, SUFFIXES[many])

    def bounded(self, axis: Axis, flat: str, lanes: str) -> str:
        """Which lanes along an axis are within its loops."""
        return f"{flat} < {axis.numel}"

    def _indices(self, axis: Axis, block: str, lanes: str) -> str:
        """The indices along an axis that the lanes of block number `block`, or of one that starts at `block`, take."""
        if axis.is_scalar:
            return block
        if axis.name == "x" and self.plan.rows_in_turn is not None:
            return f"{block} + {lanes}"
        if axis.name == "r":
            first = f"part * {self.share}" if block == "part" else block
            start = f"{first} + {lanes}" if block else lanes
            return f"({start}).to(tl.int64)" if self.is_wide else start
        return f"{block} * {axis.block_name} + {lanes}"

    def _unflatten(self, axis: Axis, flat: str, suffix: str = "") -> None:
        inner = axis.numel
        for number, dim in enumerate(axis.dims):
            inner = inner // dim.size if dim.size != 0 else 1
            text = f"{flat}{suffix} // {inner}" if inner != 1 else f"{flat}{suffix}"
            if number:
                text = f"({text}) % {dim.size}" if inner != 1 else f"{text} % {dim.size}"
            self.writer.line(f"{dim.name}{suffix} = {text}")

    def _spread(self, axis: Axis) -> str:
        """The subscript that puts a vector along its axis of the tile."""
        if len(self.vectors) == 1:
            return ""
        return f"[{', '.join(':' if other == axis else 'None' for other in self.vectors)}]"

    # Sections ------------------------------------------------------------------------------------------------

    def print_sections(self, sections: Iterable[Section]) -> None:
        for section in sections:
            if section.level == "r":
                self.comment_pass(section)
            if section.level == "x" or isinstance(self.plan, PersistentPlan | LookBackPlan):
                self.print_statements(section)
                continue
            length = text_of(self.plan.axes[-1].numel)
            self.print_loop(section, "0", length)
            for statement in section.reductions:
                self.reducer(statement).collapse(statement, "0", length)

    def comment_pass(self, section: Section) -> None:
        number = self.program.passes.index(section) + 1
        made = [s.target for s in (*section.scans, *section.reductions)]
        made += [identifier(s.buffer or "") for s in section.statements if s.op == "store"]
        self.writer.blank()
        self.writer.line(f"# Pass {number} over r: {', '.join(made)}")

    def print_statements(self, section: Section, is_looped: bool = False) -> None:
        """The section's lines; a reduction is done at once, or in a loop goes to its accumulator."""
        rows = interleaved_stores(section, self.printer)
        together = {statement.number for row in rows for statement in row}
        for statement in self.in_order(section.statements):
            self.printer.note_axes(statement)
            if statement.number in together:
                continue
            self.before(statement)
            if States.holds(statement) or (statement.op == "reduce" and is_looped):
                self.reducer(statement).take(statement)
            elif statement.op == "reduce":
                self.reductions.reduce_at_once(statement)
            elif statement.op == "across" and self.gathering is not None:
                self.gathering.take(statement)
            elif statement.op == "scan":
                self.print_scan(statement, is_looped)
            else:
                line = self.printer.line(statement)
                if line is not None:
                    self.writer.line(line, statement.nodes)
        for row in rows:
            self.writer.line(store_of_row(row, self.printer), tuple(node for s in row for node in s.nodes))

    def in_order(self, statements: Sequence[Statement]) -> list[Statement]:
        return loads_first(statements)

    def before(self, statement: Statement) -> None:
        """What has to come before a statement."""

    def print_scan(self, statement: Statement, is_looped: bool) -> None:
        self.scans.take(statement, is_looped)

    def print_loop(self, section: Section, first: str, last: str, start: str = "", step: str = "") -> None:
        """A pass over r from `first` to `last`, counted from `start` if there is one, by a block or by `step`."""
        for statement in section.reductions:
            self.reducer(statement).start(statement)
        r_axis = self.plan.axes[-1]
        self.scans.start(section.scans)
        counter = "r_offset" if start else "r_start"
        with self.writer.block(f"for {counter} in {self._range(first, last, step or r_axis.block_name)}"):
            if start:
                self.writer.line(f"r_start = {start} + {counter}")
            self.print_axis(r_axis, "r_start")
            self.print_statements(section, is_looped=True)

    def _range(self, first: str, last: str, step: str) -> str:
        bounds = ", ".join(filter(None, (first, last, step)))
        if not isinstance(self.plan, WholeRows) or self.plan.stages == 1:
            return f"range({bounds})"
        # Triton's `range` loads ahead only where it is told how far.
        step = "" if step else ", 1"
        return f"tl.range({bounds}{step}, num_stages={self.plan.stages})"

    # Reductions across x ------------------------------------------------------------------------------------

    def _rows_of_a_part(self, gathering: Gathering) -> None:
        """Each program goes through its rows and gathers; the last one to finish joins the parts."""
        x_axis = self.plan.axes[0]
        gathering.start()
        step = "" if x_axis.is_scalar else x_axis.block_name
        with self.writer.block(f"for x_start in {self._range('x_first', 'x_last', step)}"):
            self.print_axis(x_axis, "x_start")
            self.print_sections(self.program.sections)
        self.writer.blank()
        self.writer.line("# What this program has gathered.")
        gathering.store_parts()
        gathering.join(self.print_tail)

    def print_tail(self) -> None:
        """What follows when everything is joined."""
        self.print_statements(Section("x", self.program.tail))


def _blocks_text(axis: Axis) -> str:
    if isinstance(axis.numel, int):
        return str(axis.blocks)
    return f"tl.cdiv({text_of(axis.numel)}, {axis.block_name})"

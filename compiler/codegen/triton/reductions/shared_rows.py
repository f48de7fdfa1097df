"""Print split reductions, and what they share with those of teams (`teams.py`): what each program leaves in the
workspace, and how the parts are joined.

Each program loops over its part. The last one to arrive joins the parts and goes on alone, and the last of those of all
rows joins what is reduced across them.
"""

from __future__ import annotations

from functools import cached_property

from compiler.codegen.triton.printer import KernelPrinter
from compiler.codegen.triton.values.ops import DTYPES
from compiler.ir.size import known, next_power_of_two, text_of
from compiler.schedule.program.program import Section, Statement
from compiler.schedule.tiles.plan import CooperativePlan, SharedRowPlan, SplitPlan

#: Warps of a program that is large.
LARGE_WARPS = 16
#: Bytes of a word, and the counters that the number of all programs so far takes where words are sent.
WORD, COUNTERS_OF_WORDS = 8, 2

#: What the lines are for that draw a ticket.
IN_ORDER = "# Tickets are drawn in the order in which programs start, since they wait for each other."


class SharedRowPrinter(KernelPrinter):
    """Prints a plan by which several programs have a row."""

    plan: SharedRowPlan
    #: Whether programs that start together have the same part of several rows: neighbours in memory at one time.
    has_rows_together = False

    def __init__(self, plan: SharedRowPlan) -> None:
        super().__init__(plan)
        self.splits, self.x_axis, self.r_axis = plan.splits, plan.axes[0], plan.axes[-1]

    def draw_program_id(self) -> str:
        """The number of a program among all of them."""
        return self.program_id

    def print_indices(self) -> None:
        """Which row a program shares with others, and which part of it is its own."""
        program_id = self.draw_program_id() + (".to(tl.int64)" if self.is_wide else "")
        row, part = ("%", "//") if self.has_rows_together else ("//", "%")
        count = self.x_axis.blocks if self.has_rows_together else self.splits
        self.writer.line(f"x_block = {program_id} {row} {count}")
        self.writer.line(f"part = {program_id} {part} {count}")
        self.print_axis(self.x_axis, "x_block")
        if not isinstance(self.plan, SplitPlan):
            self.print_axis(self.r_axis, "part")

    def draw_with_launch(self) -> str:
        """The ticket of a program, and the number of the launch."""
        programs = known(self.plan.grid)
        self.writer.line(IN_ORDER)
        self.writer.line('drawn = tl.atomic_add(counters_ptr.to(tl.pointer_type(tl.int64)), 1, sem="relaxed")')
        self.writer.line(f"ticket = (drawn % {programs}).to(tl.int32)")
        self.writer.line(f"launch = drawn // {programs} + 1 & 0xFFFFFFFF")
        return "ticket"


class JoiningPrinter(SharedRowPrinter):
    """Prints the values that programs leave of reductions, and how they are joined."""

    plan: SplitPlan | CooperativePlan
    #: Bytes of a value in the workspace, if not those of its dtype.
    word = 0

    @property
    def axis(self) -> int:
        return len(self.vectors) - 1

    @cached_property
    def workspace(self) -> tuple[dict[tuple[int, int], int], int]:
        """Where the parts of each reduction lie in the workspace (in bytes, by statement and value), and its size."""
        slots: dict[tuple[int, int], int] = {}
        size = 0
        for section in self.program.sections:
            for statement in section.reductions:
                for which, (_, dtype, _) in enumerate(self.reducer(statement).values(statement)):
                    slots[statement.number, which] = size
                    bytes_of_one = self.word or dtype.itemsize
                    size += -(-self.splits * self.rows * bytes_of_one // 16) * 16
        return slots, size

    @property
    def rows(self) -> int:
        return known(self.x_axis.numel)

    def leave(self, statement: Statement) -> None:
        """What a program leaves of its part."""
        masks = self.printer.masks(frozenset("x"))
        for which, (name, dtype, _) in enumerate(self.reducer(statement).values(statement)):
            start = self.workspace[0][statement.number, which]
            self.writer.point_to(f"{name}_ptr", start, DTYPES[dtype], statement.nodes)
            self.writer.store(f"{name}_ptr + {self._slot('part')}", name, masks, statement.nodes)

    def _slot(self, part: str) -> str:
        return part if self.rows == 1 else f"({part} * {self.rows} + x_index)"

    def join(self, section: Section, chunk: str) -> None:
        """The results of a section's reductions, from all parts, each of `chunk` elements."""
        splits, r_axis = self.splits, self.r_axis
        self.writer.line(f"parts = tl.arange(0, {next_power_of_two(splits)}){'[None, :]' if self.axis else ''}")
        for statement in section.reductions:
            names = []
            for name, _, fill in self.reducer(statement).values(statement):
                names.append(f"{statement.target}_parts{name.removeprefix(statement.target).removeprefix('_acc')}")
                self.writer.line(f"{names[-1]} = {self.part_values(name, fill)}", statement.nodes)
            self.reducer(statement).join_parts(statement, names, chunk, text_of(r_axis.numel))

    def part_values(self, name: str, fill: str) -> str:
        """What all programs have left of one value, `fill` where there is no program."""
        splits = self.splits
        is_within = f"(parts < {splits})" if self.rows > 1 else f"parts < {splits}"
        masks = " & ".join([is_within, *self.printer.masks(frozenset("x"))])
        return f'tl.load({name}_ptr + {self._slot("parts")}, {masks}, other={fill}, cache_modifier=".cg")'


class SplitPrinter(JoiningPrinter):
    """Prints a split plan: the last program of a row goes on."""

    plan: SplitPlan

    def __init__(self, plan: SplitPlan) -> None:
        super().__init__(plan)
        self.has_rows_together = not self.x_axis.is_scalar
        self.gathering = self.gathering_of(plan.parts)
        if self.gathering is not None:
            self.gathering.come_after(self.workspace[1], known(self.x_axis.blocks))

    @property
    def scratch(self) -> dict[str, int]:
        counters = known(self.x_axis.blocks)
        own = {"workspace_bytes": self.workspace[1], "counters": counters, "splits": self.splits}
        return own | super().scratch

    @property
    def how(self) -> str:
        return f", shared among {self.splits} programs"

    def print_rows(self) -> None:
        """Each program reduces its part of r; the last one to finish combines the parts, in their order."""
        sections, gathering, first = self.program.sections, self.gathering, self.program.first_pass
        before, reducing, after = sections[:first], sections[first], sections[first + 1 :]
        self.print_sections(before)
        self.comment_pass(reducing)
        self._part(reducing)
        self.writer.blank()
        self.writer.line("# The last program to arrive combines the parts, always in the same order.")
        self.writer.line("tl.debug_barrier()")
        self.writer.line("arrived = tl.atomic_add(counters_ptr + x_block, 1)")
        with self.writer.block(f"if arrived == {self.splits - 1}"):
            if gathering is not None:
                gathering.start()
            self.join(reducing, str(self.plan.chunk or "chunk"))
            self.print_sections(after)
            self.writer.line("# The counter is left as it was found: zero.")
            self.writer.line("tl.store(counters_ptr + x_block, 0)")
            if gathering is not None:
                gathering.store_parts()
                gathering.join(self.print_tail)

    def _part(self, section: Section) -> None:
        r_axis, chunk = self.r_axis, str(self.plan.chunk)
        if not self.plan.chunk:
            chunk = "chunk"
            share = f"tl.cdiv({text_of(r_axis.numel)}, {self.splits} * {r_axis.block_name})"
            self.writer.line(f"chunk = {share} * {r_axis.block_name}")
        if self._parts_are_alike:
            # As many steps in each part: the assembler unrolls a loop whose steps it can count. Programs take blocks in
            # turns, so that all of them go through memory together.
            first, last = "0", chunk
            turns = f"{self.splits} * {r_axis.block_name}"
            self.print_loop(section, "0", text_of(r_axis.numel), f"part * {r_axis.block_name}", turns)
        else:
            first, last = "first", "last"
            self.writer.line(f"first = part * {chunk}")
            self.writer.line(f"last = tl.minimum(first + {chunk}, {text_of(r_axis.numel)})")
            self.print_loop(section, first, last)
        for statement in section.reductions:
            self.reducer(statement).leave(statement, first, last)
            self.leave(statement)

    @property
    def _parts_are_alike(self) -> bool:
        """Whether all parts are of one length, and programs are small or take one block each. On an H200 the means of
        distances of neighbouring pixels take 41 us by large programs in turns, 39.5 by such that have their blocks one
        after the other."""
        x_axis, r_axis = self.plan.axes
        is_small = not x_axis.is_scalar or self.plan.num_warps < LARGE_WARPS or self.plan.chunk == r_axis.block
        return is_small and self.plan.chunk * self.splits == r_axis.numel

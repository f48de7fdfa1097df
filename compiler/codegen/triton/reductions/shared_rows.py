"""Print split and cooperative reductions: what each program leaves in the workspace, and how the parts are joined.

    split    each program loops over its part;  the last one to arrive joins the parts and goes on alone, and the last
             of those of all rows joins what is reduced across them
    team     each program holds its part in registers;  all wait until the last one has arrived, each joins the parts
             for itself, in the same order, and goes on with its own

The programs of a team (`team`) must run at the same time. Which part a program takes is therefore not its number in
the launch but the place at which it started, drawn from a counter: whoever waits only waits for programs that have
started or start next, and a team is small enough for all of it to run (`schedule/tiles/cooperative.py`).

Programs of a team count themselves when they have left their values. Sums of exponentials go without a counter: they
are left as words of 64 bits, 32 of a value and the number of the launch, by which who reads knows whether it is there,
so that no memory has to be in order. Teams that are small enough are clusters of the device, which need neither
(`clusters.py`). On an H200 a softmax of rows of 131,072 takes 173 us so, 184 by counters; a batch
norm, which exchanges three values, 147 and 145.
"""

from __future__ import annotations

from functools import cached_property

import torch

from compiler.codegen.triton.printer import KernelPrinter
from compiler.codegen.triton.reductions.kept import Kept, kept_exponentials
from compiler.codegen.triton.reductions.states import States
from compiler.codegen.triton.values.accesses import loads_before_waiting
from compiler.codegen.triton.values.ops import DTYPES
from compiler.ir.size import known, next_power_of_two, text_of
from compiler.schedule.program.program import Section, Statement
from compiler.schedule.tiles.plan import Axis, CooperativePlan, SharedRowPlan, SplitPlan

#: Counters of two teams are so many apart: each in a sector of memory of its own.
COUNTERS_APART = 8
#: Warps of a program that is large.
LARGE_WARPS = 16
#: Bytes of a word, and the counters that the number of all programs so far takes where words are sent.
WORD, COUNTERS_OF_WORDS = 8, 2
#: Bytes of a value that a program of a cluster leaves with the others.
FLOAT = 4

#: What the lines are for that draw a place.
IN_ORDER = "# Places are drawn in the order in which programs start, since they wait for each other."


class SharedRowPrinter(KernelPrinter):
    """Prints a plan by which several programs have a row."""

    plan: SharedRowPlan
    #: Whether programs that start together have the same part of several rows: neighbours in memory at one time.
    has_rows_together = False

    def __init__(self, plan: SharedRowPlan) -> None:
        super().__init__(plan)
        self.splits, self.x_axis, self.r_axis = plan.splits, plan.axes[0], plan.axes[-1]

    def draw_place(self) -> str:
        """The place of a program among all of them."""
        return self.place

    def print_indices(self) -> None:
        """Which row a program shares with others, and which part of it is its own."""
        place = self.draw_place() + (".to(tl.int64)" if self.is_wide else "")
        row, part = ("%", "//") if self.has_rows_together else ("//", "%")
        count = self.x_axis.blocks if self.has_rows_together else self.splits
        self.writer.line(f"x_block = {place} {row} {count}")
        self.writer.line(f"part = {place} {part} {count}")
        self.place_axis(self.x_axis, "x_block")
        if not isinstance(self.plan, SplitPlan):
            self.place_axis(self.r_axis, "part")

    def draw_with_launch(self) -> str:
        """The place of a program, and the number of the launch."""
        programs = known(self.plan.grid)
        self.writer.line(IN_ORDER)
        self.writer.line('drawn = tl.atomic_add(counters_ptr.to(tl.pointer_type(tl.int64)), 1, sem="relaxed")')
        self.writer.line(f"place = (drawn % {programs}).to(tl.int32)")
        self.writer.line(f"launch = drawn // {programs} + 1 & 0xFFFFFFFF")
        return "place"

    def point_to(self, name: str, start: int, dtype: str, nodes: tuple[str, ...], row: str = "") -> None:
        """A pointer to what lies from byte `start` on in the workspace."""
        base = f"(workspace_ptr + {start})" if start else "workspace_ptr"
        self.writer.line(f"{name} = {base}.to(tl.pointer_type({dtype})){row}", nodes)


class _JoiningPrinter(SharedRowPrinter):
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
        places: dict[tuple[int, int], int] = {}
        size = 0
        for section in self.program.sections:
            for statement in section.reductions:
                for which, (_, dtype, _) in enumerate(self.reducer(statement).values(statement)):
                    places[statement.number, which] = size
                    bytes_of_one = self.word or dtype.itemsize
                    size += -(-self.splits * self._rows * bytes_of_one // 16) * 16
        return places, size

    @property
    def _rows(self) -> int:
        return known(self.x_axis.numel)

    def _store(self, statement: Statement) -> None:
        """What a program leaves of its part."""
        masks = self.printer.masks(frozenset("x"))
        for which, (name, dtype, _) in enumerate(self.reducer(statement).values(statement)):
            start = self.workspace[0][statement.number, which]
            self.point_to(f"{name}_ptr", start, DTYPES[dtype], statement.nodes)
            self.writer.store(f"{name}_ptr + {self._place('part')}", name, masks, statement.nodes)

    def _place(self, part: str) -> str:
        return part if self._rows == 1 else f"({part} * {self._rows} + x_index)"

    def _join(self, section: Section, chunk: str) -> None:
        """The results of a section's reductions, from all parts, each of `chunk` elements."""
        splits, r_axis = self.splits, self.r_axis
        self.writer.line(f"parts = tl.arange(0, {next_power_of_two(splits)}){'[None, :]' if self.axis else ''}")
        for statement in section.reductions:
            names = []
            for name, _, fill in self.reducer(statement).values(statement):
                names.append(f"{statement.target}_parts{name.removeprefix(statement.target).removeprefix('_acc')}")
                self.writer.line(f"{names[-1]} = {self._part_values(name, fill)}", statement.nodes)
            self.reducer(statement).join_parts(statement, names, chunk, text_of(r_axis.numel))

    def _part_values(self, name: str, fill: str) -> str:
        """What all programs have left of one value, `fill` where there is no program."""
        splits = self.splits
        is_within = f"(parts < {splits})" if self._rows > 1 else f"parts < {splits}"
        masks = " & ".join([is_within, *self.printer.masks(frozenset("x"))])
        return f'tl.load({name}_ptr + {self._place("parts")}, {masks}, other={fill}, cache_modifier=".cg")'


class SplitPrinter(_JoiningPrinter):
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
        sections, gathering = self.program.sections, self.gathering
        place = next(number for number, section in enumerate(sections) if section.level == "r")
        before, reducing, after = sections[:place], sections[place], sections[place + 1 :]
        self.print_sections(before)
        self.comment_pass(reducing, 1)
        self._part(reducing)
        self.writer.blank()
        self.writer.line("# The last program to arrive combines the parts, always in the same order.")
        self.writer.line("tl.debug_barrier()")
        self.writer.line("arrived = tl.atomic_add(counters_ptr + x_block, 1)")
        with self.writer.block(f"if arrived == {self.splits - 1}"):
            if gathering is not None:
                gathering.start()
            self._join(reducing, str(self.plan.chunk or "chunk"))
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
            self._store(statement)

    @property
    def _parts_are_alike(self) -> bool:
        """Whether all parts are of one length, and programs are small or take one block each. On an H200 the means of
        distances of neighbouring pixels take 41 us by large programs in turns, 39.5 by such that have their blocks one
        after the other."""
        x_axis, r_axis = self.plan.axes
        is_small = not x_axis.is_scalar or self.plan.num_warps < LARGE_WARPS or self.plan.chunk == r_axis.block
        return is_small and self.plan.chunk * self.splits == r_axis.numel


class CooperativePrinter(_JoiningPrinter):
    """Prints a cooperative plan: all programs of a row go on."""

    plan: CooperativePlan

    def __init__(self, plan: CooperativePlan) -> None:
        super().__init__(plan)
        self.is_cluster, self.share = plan.team.is_cluster, plan.share
        self.word = WORD if self.sends_words else 0

    @property
    def scratch(self) -> dict[str, int]:
        if self.is_cluster:
            return {"team": self.splits, "cluster": self.splits}
        # One counter for the places, and one for each team.
        counters = COUNTERS_OF_WORDS if self.sends_words else COUNTERS_APART * (1 + known(self.x_axis.blocks))
        return {"workspace_bytes": self.workspace[1], "counters": counters, "team": self.splits, "waits": 1}

    @property
    def how(self) -> str:
        return f", held by a {'cluster' if self.is_cluster else 'team'} of {self.splits} programs"

    def bounded(self, axis: Axis, flat: str, lanes: str) -> str:
        bounded = super().bounded(axis, flat, lanes)
        if axis.name != "r" or not self.plan.has_equal_shares:
            return bounded
        in_share = f"{lanes} < {self.share}"
        return in_share if self.plan.team.share * self.splits == axis.numel else f"({in_share}) & ({bounded})"

    @cached_property
    def sends_words(self) -> bool:
        """Whether what a team exchanges are sums of exponentials alone, one row at a time."""
        reductions = [s for section in self.program.sections for s in section.reductions]
        is_exponential = all(s.value == "exponentials" and s.dtype == torch.float32 for s in reductions)
        return not self.is_cluster and self.x_axis.is_scalar and is_exponential

    def draw_place(self) -> str:
        if self.is_cluster:
            self.writer.line("# The programs of a row are a cluster: they run at the same time.")
            for number, section in enumerate(self._exchanging, start=1):
                values = sum(len(self.reducer(statement).values(statement)) for statement in section.reductions)
                self.writer.line(f"gate_{number} = open_gate({FLOAT} * {values} * {self.splits})")
            self.writer.line("cluster_arrive()")
            self.writer.line("place = tl.program_id(0)")
            return "place"
        if self.sends_words:
            return self.draw_with_launch()
        self.writer.line(IN_ORDER)
        self.writer.line('place = tl.atomic_add(counters_ptr, 1, sem="relaxed")')
        with self.writer.block(f"if place == {known(self.plan.grid) - 1}"):
            self.writer.line("tl.store(counters_ptr, 0)")
        return "place"

    def print_rows(self) -> None:
        """Every statement once; after each section with reductions the team exchanges its parts."""
        exchanges = passes = 0
        if not self.sends_words and not self.is_cluster:
            self.writer.line(f"counter = counters_ptr + {COUNTERS_APART} * (1 + x_block)")
        self.printer.unread = self.kept.unread
        first = self.program.sections.index(self._exchanging[0])
        share = self.plan.team.share
        early = loads_before_waiting(self.program.sections[first + 1 :], self.r_axis, share)
        for place, section in enumerate(self.program.sections):
            if section.level == "r":
                passes += 1
                self.comment_pass(section, passes)
            reductions = {s.number for s in section.reductions}
            plain = tuple(s for s in section.statements if s.number not in reductions and s not in early)
            self.print_statements(Section(section.level, (*plain, *early) if place == first else plain))
            if reductions:
                exchanges += 1
                self._exchange(section, exchanges)
                self._use_kept(section)
        if self.sends_words or self.is_cluster:
            return
        self.writer.blank()
        self.writer.line("# The last one to leave puts the counter back to zero.")
        self.writer.line('left = tl.atomic_add(counter, 1, sem="relaxed")')
        with self.writer.block(f"if left == {(exchanges + 1) * self.splits - 1}"):
            self.writer.line("tl.store(counter, 0)")

    @cached_property
    def kept(self) -> Kept:
        return kept_exponentials(self.program)

    def _use_kept(self, section: Section) -> None:
        """What stands for exponentials that were kept, and quotients of them."""
        by_number = self.printer.by_number
        for s in section.reductions:
            if s.number in self.kept.reductions:
                largest = self.states.names(s)[0]
                self.writer.line(f"{s.target}_factor = libdevice.exp({s.target}_own - {largest})", s.nodes)
        for number, s in self.kept.exponentials.items():
            self.printer.instead[number] = f"{s.target}_kept * {s.target}_factor"
        for number, s in self.kept.quotients.items():
            divisor = self.printer.operand(by_number[number].operands[1]).block
            self.printer.instead[number] = f"{s.target}_kept * ({s.target}_factor / {divisor})"

    def _exchange(self, section: Section, number: int) -> None:
        for statement in section.reductions:
            self.printer.note_axes(statement)
            if States.holds(statement):
                keeps = statement.number in self.kept.reductions
                self.states.at_once(statement, text_of(self.r_axis.numel), self.share, keeps)
            else:
                reduction = self.reductions.kind_of(statement)
                self.reductions.leave_of(statement, self.reductions.lanes_of(statement, reduction, is_whole=True))
            if not self.is_cluster:
                self._store(statement)
        if self.is_cluster:
            self._leave(section, number)
        elif not self.sends_words:
            self.writer.line("tl.debug_barrier()")
            self.writer.line("tl.atomic_add(counter, 1)")
            self.writer.line(f"wait_for(counter, {number * self.splits})")
        self._join(section, str(self.plan.team.share))

    @property
    def _exchanging(self) -> list[Section]:
        """The sections after which the programs of a team wait for each other."""
        return [section for section in self.program.sections if section.reductions]

    def _leave(self, section: Section, number: int) -> None:
        """Every program of a cluster leaves its values with all, and has theirs."""
        if number == 1:
            self.writer.line("cluster_wait()")
        for statement in section.reductions:
            for name, _, _ in self.reducer(statement).values(statement):
                self.writer.line(f"{name}_left = leave({name}, gate_{number})", statement.nodes)
        self.writer.line(f"wait_at(gate_{number})")

    def _store(self, statement: Statement) -> None:
        if not self.sends_words:
            super()._store(statement)
            return
        for which, (name, _, _) in enumerate(self.reducer(statement).values(statement)):
            self.point_to(f"{name}_ptr", self.workspace[0][statement.number, which], "tl.int64", statement.nodes)
            self.writer.line(f"send({name}_ptr + {self._word('part')}, {name}, launch)", statement.nodes)

    def _word(self, part: str) -> str:
        """The parts of a row lie side by side."""
        return part if self._rows == 1 else f"(x_index * {self.splits} + {part})"

    def _part_values(self, name: str, fill: str) -> str:
        if not self.is_cluster and not self.sends_words:
            return super()._part_values(name, fill)
        is_full = self.splits == next_power_of_two(self.splits)
        part = "parts" if is_full else f"tl.minimum(parts, {self.splits - 1})"
        left, sent = f"left_by({name}_left, {part})", f"receive({name}_ptr + {self._word(part)}, launch)"
        value = left if self.is_cluster else sent
        return value if is_full else f"tl.where(parts < {self.splits}, {value}, {fill})"

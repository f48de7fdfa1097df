"""Print cooperative reductions: each program of a team holds its part of a row in registers. All wait until the last
one has left what its part comes to. Each joins the parts for itself, in the same order, and goes on with its own.

The programs of a team must run at the same time. Which part a program takes is therefore not its number in the launch
but the ticket with which it started, drawn from a counter: whoever waits only waits for programs that have started or
start next, and a team is small enough for all of it to run (`schedule/tiles/cooperative.py`).

There are three ways to exchange values:

    CountedTeamPrinter   programs leave them in memory, and count themselves then
    SendingTeamPrinter   each value is a word of 64 bits, 32 of it the number of the launch, by which who reads knows
                         whether it is there: no counter, and no order of memory. For sums of exponentials
    ClusterPrinter       teams that are small enough are clusters of the device, which need neither (`clusters.py`)

On an H200 a softmax of rows of 131,072 takes 173 us by words, 184 by counters; a batch norm, which exchanges three
values, 147 and 145.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch

from compiler.codegen.triton.reductions.kept import Kept, kept_exponentials
from compiler.codegen.triton.reductions.shared_rows import COUNTERS_OF_WORDS, IN_ORDER, WORD, JoiningPrinter
from compiler.codegen.triton.reductions.states import States
from compiler.codegen.triton.values.accesses import loads_before_waiting
from compiler.ir.size import known, next_power_of_two, text_of
from compiler.schedule.program.program import Section, Statement
from compiler.schedule.tiles.plan import Axis, CooperativePlan

#: Counters of two teams are so many apart: each in a sector of memory of its own.
COUNTERS_APART = 8
#: Bytes of a value that a program of a cluster leaves with the others.
FLOAT = 4


def printer_of(plan: CooperativePlan) -> CooperativePrinter:
    """The printer of the way in which the team exchanges values."""
    if plan.team.is_cluster:
        return ClusterPrinter(plan)
    reductions = [s for section in plan.program.sections for s in section.reductions]
    are_exponentials = all(s.value == "exponentials" and s.dtype == torch.float32 for s in reductions)
    return (SendingTeamPrinter if plan.axes[0].is_scalar and are_exponentials else CountedTeamPrinter)(plan)


class CooperativePrinter(JoiningPrinter):
    """Prints a cooperative plan: all programs of a row go on."""

    plan: CooperativePlan
    company = "team"

    def __init__(self, plan: CooperativePlan) -> None:
        super().__init__(plan)
        self.share = plan.share

    def wait(self, section: Section, number: int) -> None:
        """Until all programs of the team have left what their parts of `section`, the exchange of this number, come
        to."""
        raise NotImplementedError

    @property
    def how(self) -> str:
        return f", held by a {self.company} of {self.splits} programs"

    def bounded(self, axis: Axis, flat: str, lanes: str) -> str:
        bounded = super().bounded(axis, flat, lanes)
        if axis.name != "r" or not self.plan.has_equal_shares:
            return bounded
        in_share = f"{lanes} < {self.share}"
        return in_share if self.plan.team.share * self.splits == axis.numel else f"({in_share}) & ({bounded})"

    def print_rows(self) -> None:
        """Every statement once; after each section with reductions the team exchanges its parts."""
        exchanges = 0
        self.printer.unread = self.kept.unread
        first = self.program.sections.index(self.exchanging[0])
        early = loads_before_waiting(self.program.sections[first + 1 :], self.r_axis, self.plan.team.share)
        for position, section in enumerate(self.program.sections):
            if section.level == "r":
                self.comment_pass(section)
            reductions = {s.number for s in section.reductions}
            plain = tuple(s for s in section.statements if s.number not in reductions and s not in early)
            self.print_statements(Section(section.level, (*plain, *early) if position == first else plain))
            if reductions:
                exchanges += 1
                self._exchange(section, exchanges)
                self._use_kept(section)

    @property
    def exchanging(self) -> list[Section]:
        """The sections after which the programs of a team wait for each other."""
        return [section for section in self.program.sections if section.reductions]

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
                self.reductions.leave_of(statement, self.reductions.lanes_of(statement, is_whole=True))
            self.leave(statement)
        self.wait(section, number)
        self.join(section, str(self.plan.team.share))

    def read_unmasked(self, value: Callable[[str], str], fill: str) -> str:
        """`value` of each part, which is read without a mask: lanes of no part read the last one."""
        if self.splits == next_power_of_two(self.splits):
            return value("parts")
        return f"tl.where(parts < {self.splits}, {value(f'tl.minimum(parts, {self.splits - 1})')}, {fill})"


class CountedTeamPrinter(CooperativePrinter):
    """Programs count themselves when they have left their values in memory."""

    @property
    def scratch(self) -> dict[str, int]:
        # One counter for the tickets, and one for each team.
        counters = COUNTERS_APART * (1 + known(self.x_axis.blocks))
        return {"workspace_bytes": self.workspace[1], "counters": counters, "team": self.splits, "waits": 1}

    def draw_program_id(self) -> str:
        self.writer.line(IN_ORDER)
        self.writer.line('ticket = tl.atomic_add(counters_ptr, 1, sem="relaxed")')
        with self.writer.block(f"if ticket == {known(self.plan.grid) - 1}"):
            self.writer.line("tl.store(counters_ptr, 0)")
        return "ticket"

    def print_rows(self) -> None:
        self.writer.line(f"counter = counters_ptr + {COUNTERS_APART} * (1 + x_block)")
        super().print_rows()
        self.writer.blank()
        self.writer.line("# The last one to leave puts the counter back to zero.")
        self.writer.line('left = tl.atomic_add(counter, 1, sem="relaxed")')
        with self.writer.block(f"if left == {(len(self.exchanging) + 1) * self.splits - 1}"):
            self.writer.line("tl.store(counter, 0)")

    def wait(self, section: Section, number: int) -> None:
        self.writer.line("tl.debug_barrier()")
        self.writer.line("tl.atomic_add(counter, 1)")
        self.writer.line(f"wait_for(counter, {number * self.splits})")


class SendingTeamPrinter(CooperativePrinter):
    """Values carry the number of the launch: whoever reads one waits for it."""

    word = WORD

    @property
    def scratch(self) -> dict[str, int]:
        return {
            "workspace_bytes": self.workspace[1],
            "counters": COUNTERS_OF_WORDS,
            "team": self.splits,
            "waits": 1,
        }

    def draw_program_id(self) -> str:
        return self.draw_with_launch()

    def leave(self, statement: Statement) -> None:
        for which, (name, _, _) in enumerate(self.reducer(statement).values(statement)):
            self.writer.point_to(f"{name}_ptr", self.workspace[0][statement.number, which], "tl.int64", statement.nodes)
            self.writer.line(f"send({name}_ptr + {self._word('part')}, {name}, launch)", statement.nodes)

    def wait(self, section: Section, number: int) -> None:
        """Where values are read."""

    def part_values(self, name: str, fill: str) -> str:
        return self.read_unmasked(lambda part: f"receive({name}_ptr + {self._word(part)}, launch)", fill)

    def _word(self, part: str) -> str:
        """The parts of a row lie side by side."""
        return part if self.rows == 1 else f"(x_index * {self.splits} + {part})"


class ClusterPrinter(CooperativePrinter):
    """Programs leave their values in each other's shared memory."""

    company = "cluster"

    @property
    def scratch(self) -> dict[str, int]:
        return {"team": self.splits, "cluster": self.splits}

    def draw_program_id(self) -> str:
        self.writer.line("# The programs of a row are a cluster: they run at the same time.")
        for number, section in enumerate(self.exchanging, start=1):
            values = sum(len(self.reducer(statement).values(statement)) for statement in section.reductions)
            self.writer.line(f"gate_{number} = open_gate({FLOAT} * {values} * {self.splits})")
        self.writer.line("cluster_arrive()")
        self.writer.line("ticket = tl.program_id(0)")
        return "ticket"

    def leave(self, statement: Statement) -> None:
        """With those of the whole section, where the programs wait."""

    def wait(self, section: Section, number: int) -> None:
        if number == 1:
            self.writer.line("cluster_wait()")
        for statement in section.reductions:
            for name, _, _ in self.reducer(statement).values(statement):
                self.writer.line(f"{name}_left = leave({name}, gate_{number})", statement.nodes)
        self.writer.line(f"wait_at(gate_{number})")

    def part_values(self, name: str, fill: str) -> str:
        return self.read_unmasked(lambda part: f"left_by({name}_left, {part})", fill)

"""Print mix-order reductions: what a kernel reduces across the rows of its programs, and how the last program joins
it.

Each program takes some rows x, one block after the other, and adds what is reduced across x to accumulators of its own:
one for each r, or one for all. At the end it writes them to the workspace and counts itself as done. Sums for each r
of many programs are too much for one of them to read, so programs form teams: the last of a team joins the parts of
the team, and the last of those joins what the teams made. Always in the same order, so results do not vary.

Rows that are too few for a program each are shared (`shared_rows.py`): the last program of a row has its result, and
leaves that instead."""

from __future__ import annotations

from collections.abc import Callable

import torch

from compiler.codegen.triton.values.ops import DTYPES, Reduction
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer
from compiler.ir.size import known, next_power_of_two
from compiler.schedule.program.program import Statement
from compiler.schedule.tiles.plan import Axis, Parts, Plan

#: Rows of the workspace that are loaded at once, and added as a tree.
_TOGETHER = 4
#: Elements of r up to which float32 sums of parts are added in double precision.
_SHORT_ROW = 1024


class Gathering:
    """Prints the lines of one plan by its `parts`; `reduction_of` gives the printing rules of a reduction."""

    def __init__(
        self,
        plan: Plan,
        parts: Parts,
        printer: StatementPrinter,
        writer: Writer,
        reduction_of: Callable[[Statement], Reduction],
    ) -> None:
        self.plan, self.parts = plan, parts
        self.printer = printer
        self.writer = writer
        self.reductions = {s.number: reduction_of(s) for s in plan.program.across}
        self.has_rows = any(axis.name == "x" for axis in plan.vectors)
        self.r_axis: Axis = plan.axes[-1]
        #: Names of a program's part, and of the parts of all; where the workspace and the counters begin.
        self.part, self.all_parts = "part", "parts"
        self.first_byte = self.first_counter = 0

    def come_after(self, bytes_of_rows: int, counters_of_rows: int) -> None:
        """Gather what the programs leave that have joined a row's parts, for which there is a workspace already."""
        self.part, self.all_parts = "x_block", "all_rows"
        self.first_byte, self.first_counter = bytes_of_rows, counters_of_rows

    # While rows are gone through --------------------------------------------------------------------------------

    def start(self) -> None:
        for s in self.plan.program.across:
            reduction = self.reductions[s.number]
            axes = self.printer.all_axes - (frozenset() if s.level == "r" else {"r"})
            shape = self.printer.shape(axes) if axes else "[]"
            self.writer.line(f"{s.target}_acc = tl.full({shape}, {reduction.identity}, {_type(reduction)})", s.nodes)

    def take(self, statement: Statement) -> None:
        """The line that adds the values of one block of rows."""
        reduction = self.reductions[statement.number]
        value = self.printer.operand(statement.operands[0]).reduced
        masks = self.printer.masks(frozenset("x"))
        if masks:
            value = f"tl.where({masks[0]}, {value}, {reduction.identity})"
        self.writer.line(reduction.add(f"{statement.target}_acc", value), statement.nodes)
        self.printer.axes_of[statement.number] = frozenset("r" if statement.level == "r" else "")

    # When they are done -----------------------------------------------------------------------------------------

    @property
    def workspace(self) -> tuple[dict[int, int], int]:
        """Where the parts of each reduction lie in the workspace (in bytes), and its size."""
        slots: dict[int, int] = {}
        size = self.first_byte
        for s in self.plan.program.across:
            slots[s.number] = size
            values = (self.parts.count + self.parts.teams) * self._row if s.level == "r" else self.parts.count
            size += -(-values * self.reductions[s.number].dtype.itemsize // 16) * 16
        return slots, size

    @property
    def config(self) -> dict[str, int]:
        """What a launch needs to know."""
        counters = self.first_counter + 1 + self.parts.teams
        return {"workspace_bytes": self.workspace[1], "counters": counters, "parts": self.parts.count}

    @property
    def _row(self) -> int:
        return known(self.r_axis.numel)

    def store_parts(self) -> None:
        slots, _ = self.workspace
        for s in self.plan.program.across:
            reduction, name = self.reductions[s.number], f"{s.target}_acc"
            if self.has_rows:
                value = reduction.collapse(name, 0)
                value = f"{value}[None, :]" if s.level == "r" else reduction.collapse(value, 0)
                self.writer.line(f"{name} = {value}", s.nodes)
            self.writer.point_to(f"{name}_ptr", slots[s.number], _type(reduction), s.nodes)
            slot = self._slot(s, self.part)
            self.writer.store(slot, name, self._mask(s), s.nodes)

    def join(self, tail: Callable[[], None]) -> None:
        """The parts of all programs as one; the last program goes on with `tail`."""
        writer, parts = self.writer, self.parts
        writer.line("tl.debug_barrier()")
        if not parts.teams:
            counter = f"counters_ptr + {self.first_counter}" if self.first_counter else "counters_ptr"
            name = "arrived_rows" if self.first_counter else "arrived"
            with writer.last_of(counter, f"{parts.count} - 1", name):
                self.finish("0", parts.count, tail)
            return
        # The parts of the teams and the teams are gone through by one variable, which Triton gives one type.
        team = f"part // {parts.team_size}"
        writer.line(f"team = ({team}).to(tl.int32)" if self.plan.needs_wide_offsets else f"team = {team}")
        size = f"tl.minimum({parts.team_size}, {parts.count} - team * {parts.team_size})"
        with writer.last_of("counters_ptr + 1 + team", f"{size} - 1"):
            self._join_team(tail)

    def _join_team(self, tail: Callable[[], None]) -> None:
        parts = self.parts
        self.writer.line("# The last of a team joins the parts of the team.")
        of_rows = [s for s in self.plan.program.across if s.level == "r"]
        first, last = f"team * {parts.team_size}", f"(team + 1) * {parts.team_size}"
        is_full = parts.count % parts.team_size == 0
        last = last if is_full else f"tl.minimum({last}, {parts.count})"
        self._add_up(of_rows, first, last, is_full and parts.team_size % _TOGETHER == 0)
        for s in of_rows:
            slot = self._slot(s, f"({parts.count} + team)")
            self.writer.store(slot, f"{s.target}_acc", self._mask(s), s.nodes)
        self.writer.line("tl.debug_barrier()")
        with self.writer.last_of("counters_ptr", f"{parts.teams} - 1", "arrived_teams"):
            self.finish(str(parts.count), parts.teams, tail)

    def finish(self, first: str, count: int, tail: Callable[[], None]) -> None:
        """Join `count` rows of parts from row `first` of the workspace on, and the single values of all programs."""
        program = self.plan.program
        self.writer.line("# The last program joins the results, always in the same order.")
        of_rows = [s for s in program.across if s.level == "r"]
        if of_rows:
            self._add_up(of_rows, first, str(count + int(first)), count % _TOGETHER == 0)
        self._add_up_values([s for s in program.across if s.level == "x"])
        for s in program.across:
            is_truth = s.dtype == torch.bool
            self.writer.line(f"{s.target} = {s.target}_acc{' != 0' if is_truth else ''}", s.nodes)
        tail()

    def _add_up(self, statements: list[Statement], first: str, last: str, is_even: bool) -> None:
        """Sums for each r, over rows of the workspace, whose number is a multiple of `_TOGETHER` where it `is_even`."""
        widened = [s for s in statements if self._is_summed_in_double(s)]
        for s in statements:
            reduction = self.reductions[s.number]
            shape, held = self.printer.shape("r"), "tl.float64" if s in widened else _type(reduction)
            self.writer.line(f"{s.target}_acc = tl.full({shape}, {reduction.identity}, {held})", s.nodes)
        with self.writer.block(f"for other in range({first}, {last}, {_TOGETHER})"):
            for s in statements:
                self._add_rows(s, last, is_even)
        for s in widened:
            self.writer.line(f"{s.target}_acc = {s.target}_acc.to(tl.float32)", s.nodes)

    def _add_rows(self, statement: Statement, last: str, is_even: bool) -> None:
        """Some rows of the workspace at once: each load waits as long as all of them do."""
        reduction, name = self.reductions[statement.number], f"{statement.target}_acc"
        loaded = []
        for number in range(_TOGETHER):
            row = f"(other + {number})" if number else "other"
            masks = self._mask(statement) + ([f"(other + {number} < {last})"] if number and not is_even else [])
            arguments = [self._slot(statement, row)]
            arguments += [" & ".join(masks), f"other={reduction.identity}"] if masks else []
            loaded.append(f"{statement.target}_{number}")
            arguments.append('cache_modifier=".cg"')
            self.writer.line(f"{loaded[-1]} = tl.load({', '.join(arguments)})", statement.nodes)
        while len(loaded) > 1:
            joined = [reduction.join(*pair) for pair in zip(loaded[::2], loaded[1::2], strict=True)]
            loaded = [f"({pair})" if reduction.kind in ("sum", "prod") else pair for pair in joined]
        self.writer.line(f"{name} = {reduction.join(name, *loaded)}", statement.nodes)

    def _is_summed_in_double(self, statement: Statement) -> bool:
        """Where rows are short and many: of a long row one multiprocessor would convert every element of every part."""
        reduction = self.reductions[statement.number]
        return reduction.kind == "sum" and reduction.dtype == torch.float32 and self._row <= _SHORT_ROW

    def _add_up_values(self, statements: list[Statement]) -> None:
        """Single values of all programs, loaded at once."""
        if statements:
            self.writer.line(f"{self.all_parts} = tl.arange(0, {next_power_of_two(self.parts.count)})")
        for s in statements:
            reduction, name = self.reductions[s.number], f"{s.target}_acc"
            load = (
                f"tl.load({name}_ptr + {self.all_parts}, {self.all_parts} < {self.parts.count}, "
                f'other={reduction.identity}, cache_modifier=".cg")'
            )
            self.writer.line(f"{name} = {reduction.collapse(load, 0)}", s.nodes)

    def _slot(self, statement: Statement, row: str) -> str:
        pointer = f"{statement.target}_acc_ptr"
        if statement.level == "x":
            return f"{pointer} + {row}"
        flat = self.r_axis.dims[0].name if len(self.r_axis.dims) == 1 else "r_index"
        return f"{pointer} + ({row} * {self._row} + {flat})"

    def _mask(self, statement: Statement) -> list[str]:
        return self.printer.masks(frozenset("r")) if statement.level == "r" else []


def _type(reduction: Reduction) -> str:
    return DTYPES[reduction.dtype]

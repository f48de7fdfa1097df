"""Programs that take a slice of each of their rows, where a kernel reduces along both directions in one read.

    program (part, slice)    rows[x] of its slice for each x of its part, columns[r] of its part for each r of its slice
    last of a slice          joins columns[r] of all parts
    last of a part           joins rows[x] of all slices, and goes on with them

By whole rows, every program has sums for all columns, and one has to read them all while the others are done. Slices
leave less to join, to as many programs as there are slices and parts.
"""

from __future__ import annotations

import torch

from compiler.codegen.triton.printer import KernelPrinter
from compiler.codegen.triton.reductions.across import Gathering
from compiler.codegen.triton.values.ops import DTYPES
from compiler.ir.size import known, next_power_of_two
from compiler.schedule.tiles.plan import Axis, Parts, Plan, PointwisePlan


def plan_of_rows(plan: Plan, parts: Parts) -> PointwisePlan:
    """The plan by which the last program of a part goes on with the rows that it has joined: all of them at once."""
    axes = (Axis("y", plan.axes[0].dims, parts.rows),)
    return PointwisePlan(plan.program, axes, plan.num_warps, evicts_first=plan.evicts_first, read_again=plan.read_again)


class SlicesPrinter(KernelPrinter):
    """Prints a plan with slices; `rows` prints what follows for the rows of a part."""

    def __init__(self, plan: Plan, parts: Parts) -> None:
        super().__init__(plan)
        self.parts, self.rows = parts, KernelPrinter(plan_of_rows(plan, parts))
        self.rows.writer = self.writer
        sections = self.program.sections
        self.reducing = next(number for number, section in enumerate(sections) if section.level == "r")
        self.sliced = sections[self.reducing].reductions

    @property
    def scratch(self) -> dict[str, int]:
        counters = self.parts.slices + self.parts.count
        own = {"workspace_bytes": self.workspace[1], "counters": counters, "slices": self.parts.slices}
        return super().scratch | own

    @property
    def how(self) -> str:
        return f"{super().how}, a slice of {self.blocks['RBLOCK']} at a time"

    @property
    def functions(self) -> dict[tuple[str, torch.dtype], None]:
        return super().functions | self.rows.functions

    @property
    def blocks(self) -> dict[str, int]:
        return super().blocks | self.rows.blocks

    @property
    def first_of_r(self) -> str:
        return "slice * RBLOCK"

    @property
    def workspace(self) -> tuple[dict[int, int], int]:
        """Where the slices of each reduction lie in the workspace (in bytes), behind what is gathered, and its size."""
        places: dict[int, int] = {}
        size = self.gathering.workspace[1] if self.gathering else 0
        for s in self.sliced:
            places[s.number] = size
            size += -(-self.parts.slices * self._rows * self.reductions.kind_of(s).dtype.itemsize // 16) * 16
        return places, size

    @property
    def _rows(self) -> int:
        return known(self.plan.axes[0].numel)

    def take_rows(self) -> None:
        self.print_sections(self.program.sections[: self.reducing + 1])
        masks = self.printer.masks(frozenset("x"))
        for s in self.sliced:
            pointer = f"{s.target}_slices_ptr + (slice * {self._rows} + {self._flat(self.plan.axes[0])})"
            self.writer.store(pointer, s.target, masks, s.nodes)

    def start_gathering(self, gathering: Gathering) -> None:
        super().start_gathering(gathering)
        places, _ = self.workspace
        for s in self.sliced:
            dtype = DTYPES[self.reductions.kind_of(s).dtype]
            pointer = f"(workspace_ptr + {places[s.number]}).to(tl.pointer_type({dtype}))"
            self.writer.line(f"{s.target}_slices_ptr = {pointer}", s.nodes)

    def join(self, gathering: Gathering) -> None:
        """Both ends: that of a slice, and that of a part."""
        parts = self.parts
        self.writer.line("tl.debug_barrier()")
        with self.writer.last_of("counters_ptr + slice", f"{parts.count} - 1"):
            gathering.finish("0", parts.count, self.print_tail)
        counter, last = f"counters_ptr + {parts.slices} + part", f"{parts.slices} - 1"
        with self.writer.last_of(counter, last, "arrived_slices"):
            self._join_rows()

    def _join_rows(self) -> None:
        slices, rows, (y_axis,) = self.parts.slices, self.rows, self.rows.plan.axes
        self.writer.line("# The last program of a part joins the slices of its rows.")
        rows.place_axis(y_axis, "part")
        self.writer.line(f"slices = tl.arange(0, {next_power_of_two(slices)})[:, None]")
        masks = [f"{mask}[None, :]" for mask in rows.printer.masks(frozenset("y"))]
        if next_power_of_two(slices) != slices:
            masks.append(f"(slices < {slices})")
        for s in self.sliced:
            reduction = self.reductions.kind_of(s)
            arguments = [f"{s.target}_slices_ptr + (slices * {self._rows} + {self._flat(y_axis)}[None, :])"]
            arguments += [" & ".join(masks), f"other={reduction.identity}"] if masks else []
            arguments.append('cache_modifier=".cg"')
            self.writer.line(f"{s.target}_slices = tl.load({', '.join(arguments)})", s.nodes)
            self.writer.line(f"{s.target} = {reduction.collapse(f'{s.target}_slices', 0)}", s.nodes)
            rows.printer.axes_of[s.number] = frozenset("y")
        for s in self.program.statements:
            if s.op == "constant":
                rows.printer.note_axes(s)
        for section in self.program.sections[self.reducing + 1 :]:
            rows.print_statements(section, 0)

    @staticmethod
    def _flat(axis: Axis) -> str:
        return axis.dims[0].name if len(axis.dims) == 1 else f"{axis.name}_index"

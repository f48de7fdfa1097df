"""Tiles of reductions: a row in registers, in blocks, or shared among programs, by what fits and fills the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from compiler.devices import SECTOR, Device
from compiler.ir.lazy import lazy
from compiler.ir.size import hint, known, next_power_of_two
from compiler.schedule.group import Group, Space
from compiler.schedule.program.build import program_of
from compiler.schedule.program.fast_math import fast_statements
from compiler.schedule.program.program import Program, Section, Statement
from compiler.schedule.program.single_pass import in_single_pass
from compiler.schedule.program.statements import sections_of
from compiler.schedule.tiles.across import joins_rows_last, plan_across
from compiler.schedule.tiles.columns import (
    SHORT,
    Walked,
    held_columns,
    streamed_plan,
    walked_by,
)
from compiler.schedule.tiles.cooperative import (
    cooperative_reduction,
    exchanges_floats,
    may_cooperate,
)
from compiler.schedule.tiles.lane_parts import plan_in_parts
from compiler.schedule.tiles.look_back import bytes_of_scans, chunks_of, may_look_back
from compiler.schedule.tiles.plan import (
    CooperativePlan,
    LookBackPlan,
    LoopedPlan,
    Parts,
    PersistentPlan,
    Plan,
    SplitPlan,
    row_axes,
)
from compiler.schedule.tiles.programs import COALESCED_POINTS
from compiler.schedule.tiles.registers import (
    carries,
    live_registers,
    loading_ahead,
    registers_for_rows,
)
from compiler.schedule.tiles.rows import plan_held, plan_looped
from compiler.schedule.tiles.shared import evicts_first, shared_rows
from compiler.schedule.tiles.walk import Walk, accesses_of, fastest, unit_bytes, with_last

#: A longer row never fits the registers of a multiprocessor beside what else a kernel holds.
_LONGEST_PERSISTENT = 32768

#: The same where neighbours in memory are different rows, of which a program holds some.
_LONGEST_OUTER = 128


class _Reduction:
    """A group with reduction loops as rules of tiles ask about it. Each form of its program is made when a rule first
    asks for it: a scheduler weighs many groups, most of which are too long to be held, or certainly fit."""

    def __init__(self, group: Group, storage: Mapping[str, torch.dtype], device: Device) -> None:
        self.group, self.storage, self.device = group, storage, device
        x_dims, r_dims = group.space.x, group.space.r
        accesses = [a for a in accesses_of(self._looped) if not a.index.dims.isdisjoint(r_dims)]
        x_unit, r_unit = unit_bytes(accesses, x_dims), unit_bytes(accesses, r_dims)
        x = with_last(x_dims, fastest(x_dims, x_unit)) if x_dims else ()
        # A scan is one in the order of its loops.
        r = r_dims if group.has_scan else with_last(r_dims, fastest(r_dims, r_unit))
        self.space = Space(x, r)
        itemsize = min((a.itemsize for a in accesses), default=4)
        self.walk = Walk(r_unit[r[-1]], x_unit[x[-1]] if x else 0, itemsize)

    @lazy
    def _statements(self) -> list[Statement]:
        return fast_statements(self.group)

    @lazy
    def _relative(self) -> list[Statement]:
        """The same with relative sums in the pass of what they are relative to."""
        group = self.group
        if not group.single_pass:
            return self._statements
        return fast_statements(group, in_single_pass(group.single_pass, group.space.reduction_numel))

    @lazy
    def _looped(self) -> Program:
        return program_of(self.group, self._relative, self.storage)

    @lazy
    def looped(self) -> Program:
        """Pass by pass, with relative sums."""
        return replace(self._looped, space=self.space)

    @lazy
    def persistent(self) -> Program:
        """With all of a row at hand, each value once."""
        program = program_of(self.group, self._statements, self.storage, is_persistent=True)
        return replace(program, space=self.space)

    @lazy
    def exchanged(self) -> Program:
        """The same with relative sums, where a row is held by several programs that exchange what they reduce."""
        if not self.group.single_pass:
            return self.persistent
        program = program_of(self.group, self._relative, self.storage, is_persistent=True)
        return replace(program, space=self.space)

    @lazy
    def passes(self) -> int:
        """How many passes it takes with nothing at hand."""
        return len(self.looped.passes)

    @lazy
    def fits_registers(self) -> bool:
        """Whether all of r may be held in registers. For one pass nothing is gained beyond a block's worth of r."""
        size, walk, passes = self.group.space.reduction_numel, self.walk, self._plain_passes
        if not isinstance(size, int):
            return False  # a later call may have more
        if self.goes_across:
            return size <= SHORT or (size <= _LONGEST_OUTER and passes > 1)
        padded = next_power_of_two(size)
        if (passes == 1 and size > 4096) or padded > _LONGEST_PERSISTENT:
            return False
        # Where x is contiguous in memory too, a block of it is held at once, so that both directions coalesce.
        rows = next_power_of_two(hint(self.group.space.numel))
        points = min(COALESCED_POINTS, rows) if walk.is_mixed else 1
        budget = registers_for_rows(self.device)
        return padded * points <= budget and padded * live_registers(self.persistent) * points <= budget

    @lazy
    def _plain_passes(self) -> int:
        if not self.group.single_pass:
            return self.passes
        sections = sections_of(self._statements, is_persistent=False)
        return sum(section.level == "r" for section in sections)

    @property
    def goes_across(self) -> bool:
        """Whether neighbours in memory are different rows, and nothing much lies along r."""
        return self.walk.is_outer and not self.walk.is_mixed

    @property
    def goes_along(self) -> bool:
        """Whether neighbours in memory are elements of one row, and nothing much lies along x."""
        return not (self.walk.is_outer or self.walk.is_mixed)

    @lazy
    def walked(self) -> Walked:
        """What is read of columns."""
        return walked_by(self.looped)

    @lazy
    def operations(self) -> int:
        """Weighted operations for each element; see `OpInfo.cost`."""
        of_rows = (m for m in self.group.members if not m.body.dims.isdisjoint(self.group.space.r))
        return sum(member.body.operations for member in of_rows)

    @lazy
    def held_columns(self) -> PersistentPlan | None:
        """Columns that programs hold, where several passes go over them, if that gains something."""
        length = self.space.reduction_numel
        if not self.goes_across or self._plain_passes < 2 or not isinstance(length, int) or length <= SHORT:
            return None
        if self.group.has_scan or any(s.level == "r" for s in self.looped.across):
            return None
        columns = held_columns(hint(self.space.numel), length, self.walked, self.device)
        if columns is None:
            return None
        axes = row_axes(self.persistent, columns.x_block, columns.r_block)
        return PersistentPlan(self.persistent, axes, columns.warps)


def plan_reduction(group: Group, storage: Mapping[str, torch.dtype], device: Device) -> Plan:
    """The plan for a group with reduction loops."""
    reduction = _Reduction(group, storage, device)
    plan, walk = _plan_reduction(reduction), reduction.walk
    is_both = walk.is_mixed and plan.axes[0].block * walk.itemsize >= SECTOR
    plan = replace(plan, lanes="both" if is_both else "x" if walk.is_outer else "r")
    return replace(plan, evicts_first=True) if plan.evicts_first or evicts_first(plan, device) else plan


def _plan_reduction(of: _Reduction) -> Plan:
    group, device = of.group, of.device
    if may_look_back(group):
        chunks = chunks_of(hint(of.space.numel), known(of.space.reduction_numel), bytes_of_scans(group), device)
        if chunks is not None:
            return LookBackPlan(of.persistent, row_axes(of.persistent, 1, chunks.length), chunks.warps, chunks)
    team = _plan_cooperative(of) if may_cooperate(group) and not of.walk.is_mixed and of.passes > 1 else None
    if team is not None:
        return team
    if group.across:
        return _plan_both_ways(of)
    if of.held_columns is not None:
        return of.held_columns
    if of.fits_registers:
        return _plan_of_held_rows(of)
    # Not in several passes: the last program alone knows the result of the first.
    if of.passes == 1 and not group.has_scan:
        plan = _plan_of_shares(of)
        return loading_ahead(plan, device) if isinstance(plan, LoopedPlan) and carries(of.looped) else plan
    if of.goes_across and not group.has_scan:
        return streamed_plan(of.looped, of.walked, False, of.operations, device)
    return plan_looped(of.looped, of.walk, False, device)


def _plan_both_ways(of: _Reduction) -> PersistentPlan | LoopedPlan | SplitPlan:
    """Of a group that is reduced across x too. Nobody shares the rows of several passes, so those of columns are in
    narrow blocks, for enough programs."""
    whole, device = of.held_columns, of.device
    is_held = whole is not None or of.fits_registers or any(s.level == "r" for s in of.looped.across)
    if of.passes == 1 and not is_held and joins_rows_last(of.looped):
        shared = _plan_of_shares(of)
        if isinstance(shared, SplitPlan):
            x_axis = shared.axes[0]
            return replace(shared, parts=Parts(known(x_axis.blocks), x_axis.block))
    plan: PersistentPlan | LoopedPlan
    if whole is not None:
        plan = whole
    elif not is_held:
        plan = plan_looped(of.looped, of.walk, of.passes == 1, device)
    else:
        plan = _plan_of_held_rows(of)
    return plan_across(plan, whole is not None, device)


def _plan_of_held_rows(of: _Reduction) -> PersistentPlan:
    """Of rows that fit registers."""
    if of.goes_along:
        in_parts = plan_in_parts(of.group, of.storage, of.persistent, of.device)
        if in_parts is not None:
            return in_parts
    return plan_held(of.persistent, of.walk, of.device)


def _plan_of_shares(of: _Reduction) -> LoopedPlan | SplitPlan:
    """A loop of one pass, by several programs to a row where rows alone do not fill the device."""
    if of.goes_across:
        return streamed_plan(of.looped, of.walked, True, of.operations, of.device)
    return shared_rows(plan_looped(of.looped, of.walk, True, of.device), of.device)


def _plan_cooperative(of: _Reduction) -> CooperativePlan | None:
    """A team of programs for each row, if its parts fit into registers."""
    rows, length = hint(of.space.numel), known(of.space.reduction_numel)
    loads = [{s.number for s in section.statements if s.op == "load"} for section in of.looped.passes]
    held = sum(sum(number in of_pass for of_pass in loads) > 1 for number in set[int]().union(*loads))
    itemsize, floats = _loaded_itemsize(of.looped, of.walk), exchanges_floats(of.group)
    team = cooperative_reduction(rows, length, held, itemsize, of.walk.is_outer, of.device, floats)
    if team is None:
        return None
    program = _storing_rows_last(of.exchanged)
    axes = row_axes(program, team.x_block, team.r_block)
    most_registers = team.registers if team.is_cluster else 0
    return CooperativePlan(program, axes, team.warps, team, most_registers=most_registers)


def _storing_rows_last(program: Program) -> Program:
    """The program with what is stored for a row as a whole behind its first reduction: sooner it might overwrite what
    another program of a team still has to read."""
    first = program.first_pass
    before, after = program.sections[: first + 1], program.sections[first + 1 :]
    early = tuple(s for section in before for s in section.statements if s.op == "store" and s.level == "x")
    if not early:
        return program
    rest = (Section(one.level, tuple(s for s in one.statements if s not in early)) for one in before)
    sections = (*(one for one in rest if one.statements), *after, Section("x", early))
    return replace(program, sections=sections)


def _loaded_itemsize(program: Program, walk: Walk) -> int:
    """The bytes of the narrowest element that is loaded for each point of r."""
    loads = (program.dtype_of(s).itemsize for s in program.statements if s.op == "load" and s.level == "r")
    return min(loads, default=walk.itemsize)

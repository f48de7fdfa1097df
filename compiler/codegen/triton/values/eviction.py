"""Evict-first loads: what a kernel reads once leaves the cache before what others have there."""

from __future__ import annotations

from itertools import combinations

from compiler.ir.index import Index
from compiler.ir.size import hint
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.tiles.columns import LINE
from compiler.schedule.tiles.plan import PersistentPlan, Plan

#: Warps of a program from which on loads with evict-first gain: with 8 they do by 2 %.
_WARPS_EVICTING_FIRST = 8


class EvictFirst:
    """Which loads of a plan are evicted first."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._is_once = plan.evicts_first or _has_long_rows(plan)
        self._loop_dims = {dim for axis in plan.axes for dim in axis.dims if dim.size != 1}
        self._again = _read_several_times(plan.program) if self._is_once else frozenset[str]()

    def holds(self, load: Statement) -> bool:
        """What is read again stays there, but for that of long rows. On an H200 means of rows and what is scaled by
        them, 103 MB, take 92 us so, 95 if the rows stay."""
        is_each_element = load.index is not None and self._loop_dims <= load.index.dims
        stays = (self.plan.evicts_first and load.buffer in self.plan.read_again) or load.buffer in self._again
        return self._is_once and is_each_element and not stays


def _has_long_rows(plan: Plan) -> bool:
    """Whether long rows are read once and come to a few values each: what the cache holds of others can then stay.
    On an H200 the variances of rows of 4,096 float32 take 67 us so, 72 without."""
    is_row = isinstance(plan, PersistentPlan) and plan.axes[0].is_scalar and plan.parts is None
    stores = [s for s in plan.program.statements if s.op == "store"]
    return is_row and plan.num_warps >= _WARPS_EVICTING_FIRST and all(s.level == "x" for s in stores)


def _read_several_times(program: Program) -> frozenset[str]:
    """Buffers that the loops walk through in more than one way, as through a matrix and its transpose, or at places
    that share lines of the cache, as the parts of a short row do: what one load has brought, another one reads."""
    places: dict[str, set[Index]] = {}
    for s in program.statements:
        if s.op == "load" and s.buffer is not None and s.index is not None:
            places.setdefault(s.buffer, set()).add(s.index)
    return frozenset(
        buffer
        for buffer, indices in places.items()
        if any(_is_near(one, other, program.storage[buffer].itemsize) for one, other in combinations(indices, 2))
    )


def _is_near(one: Index, other: Index, itemsize: int) -> bool:
    """Whether two ways through a buffer differ by more than a distance, or by a short one."""
    return frozenset(one.terms) != frozenset(other.terms) or abs(hint(one.offset - other.offset)) * itemsize <= LINE

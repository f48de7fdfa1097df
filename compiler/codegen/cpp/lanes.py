"""Reductions of floats along a vector loop: an accumulator for each lane, and the lanes joined after the loop.

    float sum_lanes[32] = {};
    for (r0_block = 0; r0_block < 4096; r0_block += 32)
        for each lane of 32:  sum_lanes[lane] += x_ptr[r0_block + lane];
    fs::add_lanes<32>(sum, sum_lanes);

How many lanes there are, which elements each takes, and in what order they are joined depends on the loop alone. So the
result is the same, bit for bit, whatever vectors a machine has. OpenMP's clause for reductions promises no order: its
sums differ from machine to machine, and one of its lanes may overflow where another split does not.
Several vectors of lanes also do not wait for each other's additions. Lanes for what is left beside whole blocks halve
the time of sums of 77 and of 100 elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from compiler.codegen.cpp.collisions import keeps_apart
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.reductions import Accumulator, Variable
from compiler.codegen.cpp.scans import ScanPrinter
from compiler.ir.index import Dim
from compiler.schedule.program.program import Statement

#: Bytes of the lanes of a long row: two registers of the widest vectors there are.
BYTES_OF_LANES = 128
#: Points of the longest innermost loop that have a lane each: on its own, and where other loops repeat it.
EACH_ITS_LANE, EACH_ITS_LANE_AGAIN = 16, 64
#: Points of the longest row that has `SHORT_LANES`: joining more takes longer than such a row does.
SHORT_ROW, SHORT_LANES = 128, 16
#: Points left behind the blocks that are taken one after the other.
FEWEST_IN_LANES = 4

#: What joins lanes, by OpenMP's name of the operator.
_JOIN = {
    "+": "add_lanes",
    "*": "multiply_lanes",
    "|": "or_lanes",
    "&": "and_lanes",
    "max": "largest_of_lanes",
    "min": "smallest_of_lanes",
}


@dataclass(frozen=True)
class Lanes:
    """`count` lanes for the points of the loop `dim`, one after the other. The points that are left behind the last
    whole block have lanes of their own, as many as `rest`, where that is known and not too few: those of the blocks
    then stay in registers."""

    dim: Dim
    count: int
    rest: int = 0


def needs_lanes(accumulators: Sequence[Accumulator]) -> bool:
    """Whether the result depends on the order in which elements are taken."""
    has_floats = any(a.dtype.is_floating_point and not a.is_one_number for a in accumulators)
    return has_floats and not any(a.is_positional for a in accumulators)


def lanes_of(plan: Plan, statements: Sequence[Statement], itemsize: int) -> Lanes | None:
    """The lanes of a pass over rows that does `statements`, and whose widest variable has `itemsize` bytes; None where
    elements are taken one after the other."""
    if plan.shape != "rows" or not plan.r_loops:
        return None
    *around, dim = plan.r_loops
    if any(s.op == "scan" for s in statements) or not keeps_apart(dim, statements):
        return None
    most = BYTES_OF_LANES // itemsize
    if not isinstance(dim.size, int):
        return Lanes(dim, most)
    if dim.size <= (EACH_ITS_LANE_AGAIN if around else EACH_ITS_LANE):
        return Lanes(dim, dim.size) if dim.size > 1 else None
    count = SHORT_LANES if not around and dim.size <= SHORT_ROW else most
    is_whole = not (plan.is_cut and not around)
    rest = dim.size % count if is_whole else 0
    return Lanes(dim, count, rest if rest >= FEWEST_IN_LANES else 0)


class LanePrinter(ScanPrinter):
    """Prints loops whose lanes gather."""

    def each_array(
        self, write: Callable[[Variable, str, int], None], lanes: Lanes, variables: Sequence[Variable]
    ) -> None:
        """Declare or join the arrays in which lanes gather."""
        for one in variables:
            write(one, "_lanes", lanes.count)
            if lanes.rest:
                write(one, "_rest", lanes.rest)

    def declare_array(self, one: Variable, ending: str, count: int) -> None:
        """An array in which each element gathers what `one` does."""
        is_zero = one.start in ("0", "0.0", "0.0f")
        self.writer.line(f"alignas(64) {one.ctype} {one.name}{ending}[{count}]{' = {}' if is_zero else ''};")
        if not is_zero:
            self.writer.line(f"fs::fill<{one.ctype}>({one.name}{ending}, {count}, {one.start});")

    def join_array(self, one: Variable, ending: str, count: int) -> None:
        self.writer.line(f"fs::{_JOIN[one.operator]}<{count}>({one.name}, {one.name}{ending});")

    def loop_in_lanes(
        self,
        lanes: Lanes,
        bounds: tuple[int | str, int | str],
        point: Callable[[str, str], None],
        pragma: Callable[[], None],
    ) -> None:  # fmt: skip
        """The loop over the points between `bounds`: whole blocks of lanes, and then what is left. `point` prints what
        happens at a point, given the ending and the element of the variables that gather it; `pragma` what stands
        before a vector loop."""
        (first, last), name, count, writer = bounds, lanes.dim.name, lanes.count, self.writer
        is_known = isinstance(first, int) and isinstance(last, int)
        if isinstance(first, int) and isinstance(last, int):
            is_one_block = last - first == count
            rest = count if is_one_block else (last - first) % count
            whole: int | str = last - rest
        else:
            rest, whole = count, f"{name}_whole"
        if first != whole:
            block = f"{name}_block"
            condition = f"{block} < {whole}" if is_known else f"{block} + {count} <= {last}"
            with writer.block(f"for (int64_t {block} = {first}; {condition}; {block} += {count})"):
                pragma()
                with writer.block(f"for (int64_t {name}_lane = 0; {name}_lane < {count}; ++{name}_lane)"):
                    writer.line(f"const int64_t {name} = {block} + {name}_lane;")
                    point("_lanes", f"[{name}_lane]")
        if not rest:
            return
        is_in_order = is_known and rest < FEWEST_IN_LANES
        with writer.block("") if not is_known else nullcontext():
            if not is_known:
                writer.line(f"const int64_t {whole} = {last} - ({last} - {first}) % {count};")
            if not is_in_order:
                pragma()
            with writer.block(f"for (int64_t {name} = {whole}; {name} < {last}; ++{name})"):
                element = f"[{name}]" if whole == 0 else f"[{name} - {whole}]"
                point(*("", "") if is_in_order else ("_rest" if lanes.rest else "_lanes", element))

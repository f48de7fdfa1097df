"""How a group will run, as far as its cost depends on it: programs, threads, passes over the reduction loops.

On a GPU this is told by the group's tile, which the kernel is made with (`schedule/tiles/`):

    softmax of 512 rows of 131,072   ->   512 programs of 512 threads; 3 passes, each of which reads x
    the same of 16,384 rows of 4,096 ->   16,384 programs; x stays in registers, so it is read once
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from compiler.devices import WARP, Device
from compiler.ir.index import Dim
from compiler.ir.nodes import Layout
from compiler.ir.size import hint
from compiler.schedule.cost.touches import Traffic
from compiler.schedule.group import Group
from compiler.schedule.tiles.passes import passes_over_r, times_computed, times_computed_by_cpu
from compiler.schedule.tiles.plan import CooperativePlan, LookBackPlan, LoopedPlan, LoopTile, Plan, SplitPlan
from compiler.schedule.tiles.walk import accesses_by_index

#: What a step of a loop waits for, as a multiple of that of a reduction along memory: for a block that is many rows
#: high, and for a scan, which goes through shared memory several times. Measured on the H200.
ACROSS_STEP, SCAN_STEP = 2, 10

T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    """`programs` run independently, `threads` in each; each goes through `steps` blocks of the tile one after another.
    There are so many `passes` over the reduction loops that find nothing in registers any more; one where all stays in
    registers, none in a kernel without reductions."""

    programs: int
    threads: int
    steps: int = 1
    passes: int = 0
    #: Bytes that later passes read once more.
    again: int = 0
    #: How many times as long as the simplest one a step waits for what it has loaded.
    step_weight: int = 1
    is_split: bool = False
    #: Whether the last program of each row leaves a value for the last one of all.
    joins_rows: bool = False
    #: Blocks of independent points that a program takes one after another.
    blocks: int = 1
    #: The loops along which neighbouring lanes do not lie, though the kernel reduces: memory that is contiguous along
    #: these alone is walked in single sectors. Empty where the tile spans both directions.
    across: frozenset[Dim] = frozenset()
    #: Whether sums of the group's `single_pass` are carried along, which takes some arithmetic for each element.
    carries: bool = False
    #: Steps of a loop whose wait nothing hides: those of programs that are few, and must wait for each other's loads.
    lone_steps: int = 0
    #: How often a multiprocessor's programs wait for others that share their row, one after the other.
    exchanges: int = 0
    #: Whether they do so as clusters.
    in_clusters: bool = False
    #: In how many passes each member is computed, of those that several compute.
    times: Mapping[str, int] = field(default_factory=dict)


def shape_on_cpu(group: Group, traffic: Traffic, layouts: Mapping[str, Layout], device: Device) -> Shape:
    """The shape that `group`, which touches memory by `traffic`, is expected to have in C++."""
    rows = max(hint(group.space.numel), device.multiprocessors)
    if not group.space.r:
        return Shape(rows, WARP)
    # Columns go by in blocks, which stay in the cache.
    loads = passes_over_r(group)
    keeps = len(loads) < 2 or not group.reduces_along_memory(group.read_buffers)
    times = {} if keeps else times_computed_by_cpu(group, layouts)
    size_of = {touch.access: touch.bytes for touch in traffic.touches}
    again = read_again(loads, size_of)
    return Shape(rows, WARP, 1, len(loads), again, times=times)


def shape_of(group: Group, tile: LoopTile | Plan, device: Device) -> Shape:
    """The shape that `group` has on a GPU by its tile."""
    if isinstance(tile, LoopTile):
        # A lane that goes over a window by itself finds the lines that its loads leave in the nearest cache.
        return Shape(hint(tile.programs), WARP * tile.num_warps, passes=int(bool(group.space.r)))
    programs, threads = hint(tile.grid), WARP * tile.num_warps
    across = {"both": (), "x": group.space.r, "r": group.space.x}[tile.lanes]
    in_turn = tile.rows_in_turn
    blocks = -(-in_turn.rows // tile.axes[0].block) if in_turn else 1
    has_blocks = isinstance(tile, LoopedPlan | SplitPlan)
    sections = tile.program.passes if has_blocks else []
    of_row = -(-hint(tile.axes[-1].blocks) // tile.splits) * len(sections) if has_blocks else 1
    is_scan = bool(tile.program.scans)
    weight = 1 if not has_blocks else SCAN_STEP if is_scan else 1 if tile.lanes == "r" else ACROSS_STEP
    is_lone = len(sections) > 1 and tile.lanes == "x" and not is_scan and programs <= 2 * device.multiprocessors
    # On an H200 programs that share columns gain less than what they need not compute again: a softmax of 4,096 columns
    # of 8,192 bfloat16 takes 94 us so, 75 by a loop.
    computes_again = len(sections) > 1 and group.reduces_along_memory(group.read_buffers)
    return Shape(
        programs,
        threads,
        steps=of_row * blocks,
        passes=max(len(sections), 1),
        again=_read_again_in_blocks(tile) if len(sections) > 1 else 0,
        step_weight=weight,
        is_split=isinstance(tile, SplitPlan) or in_turn is not None,
        joins_rows=isinstance(tile, SplitPlan) and tile.parts is not None,
        blocks=blocks,
        across=frozenset(across),
        carries=has_blocks and bool(group.single_pass),
        lone_steps=of_row if is_lone else 0,
        exchanges=_exchanges(group, tile, device),
        in_clusters=isinstance(tile, CooperativePlan) and tile.team.is_cluster,
        times=times_computed(group) if computes_again else {},
    )


def _exchanges(group: Group, tile: Plan, device: Device) -> int:
    rows = hint(group.space.numel)
    if isinstance(tile, LookBackPlan):
        return tile.chunks.waits(rows, device)
    if not isinstance(tile, CooperativePlan):
        return 0
    of_row = sum(bool(section.reductions) for section in tile.program.passes)
    wait = tile.team.wait_of_columns(rows, device) if tile.lanes == "x" else 1
    return of_row * tile.team.waves(rows, device) * wait


def _read_again_in_blocks(tile: Plan) -> int:
    size_of = {index: access.bytes for index, access in accesses_by_index(tile.program).items()}
    sections = tile.program.passes
    passes = (frozenset((s.buffer, s.index) for s in section.statements if s.op == "load") for section in sections)
    return read_again(passes, size_of)


def read_again(passes: Iterable[frozenset[T]], size_of: Mapping[T, int]) -> int:
    """The bytes that passes load which one before has loaded already, by the size of each load."""
    total, seen = 0, set[T]()
    for loads in passes:
        total += sum(size_of.get(load, 0) for load in loads & seen)
        seen |= loads
    return total

"""Tiles of short rows that are loaded one element by each lane: a few lanes to a row, which have it in parts.

On an H200, in microseconds, by the lanes of a row, beside a tile of all of it (kernels written by hand, events around
them, eight rows for each warp):

    softmax of 150,528 rows of 49 float16     whole 28.1    16 lanes 17.9    8: 22.7    4: 33.1
    softmax of 131,072 rows of 77 float32     whole 37.0    32 lanes 30.9    16: 33.1   8: 36.2
    softmax of 75,648 rows of 197 bfloat16    whole 38.7    32 lanes 28.2    64: 35.1   16: 31.4
    layer norm of 262,144 rows of 33 float32  whole 28.3    16 lanes 27.7    8: 33.0    4: 49.4

Eight lanes store half a sector more for each that they fill. As generated, that norm takes 24.7 so, 28.0 by one more
element beside 32; its gradients, which are summed across rows too, 41.5 by programs of two warps, 45.4 by four, 90.4 by
whole rows. Where a tile of whole rows is nearly full nothing is gained (norms of 231 elements 33.6 so, 31.8), nor where
elements are looked up for each point (a softmax of 49 with a bias from a table 30.0 so, 27.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import gcd

import torch

from compiler.devices import WARP, Device
from compiler.ir.index import Dim
from compiler.ir.size import hint, known, last_power_of_two, next_power_of_two
from compiler.schedule.group import Group, Space
from compiler.schedule.program.build import fast_program
from compiler.schedule.program.lane_parts import in_lane_parts, may_be_in_parts
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.plan import Axis, PersistentPlan
from compiler.schedule.tiles.registers import registers_of_rows
from compiler.schedule.tiles.walk import Access, accesses_of
from compiler.schedule.vectors import VECTOR_BYTES

#: The shortest and the longest row; the lanes of one, and of a longer one than so many elements.
_SHORTEST, _LONGEST, _LANES, _LONG, _LANES_OF_LONG = 17, 256, 16, 64, 32
#: Warps of a program, rows of each at the most, and registers for the values of a thread.
_WARPS, _ROWS_OF_A_WARP, _REGISTERS = 2, 8, 176
#: Programs for each multiprocessor, without which nothing is gained; of a tile of whole rows, what they fill at the
#: most, in percent.
_PROGRAMS, _FULL = 16, 80
#: The most bytes that a lane moves where rows are in parts.
_WORD = 4


def plan_in_parts(
    group: Group, storage: Mapping[str, torch.dtype], program: Program, device: Device
) -> PersistentPlan | None:
    """The plan of `program`, all of whose rows are held, in parts of a row; None where nothing is gained: rows begin
    where vectors do, are long, or are few."""
    length = known(program.space.reduction_numel)
    is_full = 100 * length > _FULL * next_power_of_two(length)
    if len(program.space.r) != 1 or not _SHORTEST <= length <= _LONGEST or is_full or not _begin_anywhere(program):
        return None
    if not may_be_in_parts(group):
        return None
    lanes = _LANES if length <= _LONG else _LANES_OF_LONG
    (whole,) = group.space.r
    of_lanes = replace(whole, size=lanes)
    held = registers_of_rows(program) * -(-length // lanes) * lanes // WARP
    rows = _WARPS * min(last_power_of_two(_REGISTERS // held), _ROWS_OF_A_WARP)
    if hint(program.space.numel) < rows * _PROGRAMS * device.multiprocessors:
        return None
    rewrite = partial(in_lane_parts, whole=whole, lanes=of_lanes)
    main = fast_program(group, storage, is_persistent=True, rewrite=rewrite)
    main = replace(main, space=Space(program.space.x, (of_lanes,)))
    return PersistentPlan(main, (Axis("x", program.space.x, rows), Axis("r", (of_lanes,), lanes)), _WARPS)


def _begin_anywhere(program: Program) -> bool:
    """Whether nothing is looked up, and most of what is moved of rows is moved by words or less, as rows do not begin
    where longer vectors do."""
    (along,) = program.space.r
    if any(access.index.indirections for access in accesses_of(program)):
        return False
    of_rows = [a for a in accesses_of(program) if along in a.index.dims and not a.index.dims <= {along}]
    by_words = sum(a.bytes for a in of_rows if _bytes_at_once(a, along) <= _WORD)
    return 2 * by_words > sum(a.bytes for a in of_rows)


def _bytes_at_once(access: Access, along: Dim) -> int:
    """What a lane can move of a row: the largest power of two that divides all steps from row to row."""
    steps = [hint(factor) for atom, factor in access.index.terms if atom != along]
    common = gcd(*steps, hint(access.index.offset), VECTOR_BYTES)
    return common * access.itemsize if access.index.stride(along) == 1 else VECTOR_BYTES

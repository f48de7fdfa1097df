"""Compute several overlapping windows in one lane: what they share is loaded once.

    x < 56: v = a[x - 1] + a[x] + a[x + 1]   ->   x < 14: v = a[4*x - 1] + a[4*x] + a[4*x + 1];  w = a[4*x] + ...

Lanes side by side share what they load through the near cache, which gives a few elements in the time of one sum. Of
windows that lie one below the other, a lane that computes four loads six rows where four lanes load twelve; and what
all windows are multiplied by is loaded once for the four.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from compiler.ir.body import Access, Body
from compiler.ir.choices import without_known_conditions
from compiler.ir.index import Dim, Index
from compiler.ir.size import hint
from compiler.schedule.group import Group, Space
from compiler.schedule.once import once

#: Windows of one lane: of those that are written out, and of those that are partly a loop; and the lanes that must be
#: left for a GPU to be kept busy. On an H200 sums of 3 x 3 products of 32 x 144 x 56 x 56 bfloat16 in channels-last
#: take 93 us by one, 52 by two, 34 by four; of 7 x 7 of 32 x 96 x 56 x 56 119 us by one, 61 by four, 52 by eight.
MOST_TOGETHER, MOST_IN_LOOPS, LEAST_POINTS = 4, 8, 1 << 17


def several_to_a_lane(written: Group, window: tuple[Dim, ...], reads: Iterable[Access]) -> Group:
    """The group, whose windows are written out, with as many of them in each lane as pays. `window` are the loops that
    windows had, and `reads` what they read by them."""
    reads = tuple(reads)
    dim = next((dim for dim in written.space.x if _is_shared_along(dim, window, reads)), None)
    count = 1 if dim is None else _together(written, dim)
    if dim is None or count == 1:
        return written
    fewer = Dim(dim.name, dim.size // count)
    shifts = [{dim: Index.of(fewer) * count + n} for n in range(count)]
    # The next window's conditions are often known, and two that are alike are found to be when what is known is gone.
    members = tuple(replace(member, body=_at(shift, member.body)) for shift in shifts for member in written.members)
    x = tuple(fewer if one == dim else one for one in written.space.x)
    return replace(written, space=Space(x, written.space.r), members=members)


def _at(shift: Mapping[Dim, Index], body: Body) -> Body:
    """A body at another point, without the conditions that are known there."""
    return once(lambda: without_known_conditions(body.substitute(shift)), ("at", *shift.items()), (body,), ())


def _together(group: Group, dim: Dim) -> int:
    points, most = hint(group.space.numel), MOST_IN_LOOPS if group.space.r else MOST_TOGETHER
    return max(
        count
        for count in range(1, most + 1)
        if count == 1 or (hint(dim.size) % count == 0 and points // count >= LEAST_POINTS)
    )


def _is_shared_along(dim: Dim, window: tuple[Dim, ...], reads: tuple[Access, ...]) -> bool:
    """Whether the next window along `dim` has elements of this one, and lanes do not go along it."""
    along = [access for access in reads if dim in access.index.dims]
    if not isinstance(dim.size, int) or any(dim in access.fast_dims for access in along):
        return False
    return any(_overlaps(access.index, dim, inner) for access in along for inner in window)


def _overlaps(index: Index, dim: Dim, inner: Dim) -> bool:
    step, element = index.stride(dim), index.stride(inner)
    if not isinstance(step, int) or not isinstance(element, int) or not step or not element:
        return False
    return step % element == 0 and 0 < step // element < hint(inner.size)

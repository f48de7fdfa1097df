"""Prepare loops for tiling: split them where indices divide, merge contiguous ones, put the unit stride last.

x0 < 64, x1 < 512    load a[512*x0 + x1], store b[512*x0 + x1]      ->  x0 < 32768, a[x0], b[x0]
x0 < 32768           load a[64*(x0 % 512) + x0 // 512]              ->  x0 < 64, x1 < 512, a[64*x1 + x0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import count

from compiler.ir.canonical import Indices, merge_neighbours, substituted
from compiler.ir.index import MOST_KEPT, Dim, FloorDiv, Index, Mod
from compiler.ir.size import Integer, is_multiple
from compiler.schedule.group import Group, Space

#: Splits of one dimension are looked for this often; more is a sign of an index that will not become affine.
_MOST_SPLITS = 8


def simplify_loops(group: Group) -> Group:
    """The same group over loops that are split and merged until as many indices as possible are affine in few loops.

    Dimensions of size one disappear: indices never mention them. The loops keep their order, slowest first."""
    x, r = (tuple(dim for dim in side if dim.size != 1) for side in (group.space.x, group.space.r))
    indices = dict.fromkeys([i.index for m in group.members for i in m.body.instructions if i.index is not None])
    space, renewed = _simplified(Space(x, r or group.space.r[-1:]), tuple(indices))
    if space == group.space:
        return group  # which keeps what it has worked out
    members = (replace(member, body=member.body.map_indices(renewed.__getitem__)) for member in group.members)
    return replace(group, space=space, members=tuple(members))


# A scheduler weighs many groups over the same loops.
@lru_cache(maxsize=MOST_KEPT)
def _simplified(space: Space, indices: Indices) -> tuple[Space, Mapping[Index, Index]]:
    """The loops in their simplest form, and what becomes of each of the indices over them."""
    found = indices
    for _ in range(_MOST_SPLITS):
        split = _split_point(found)
        if split is None:
            break
        dim, inner_size = split
        taken = {d.name for d in space.dims}
        name = next(name for n in count() if (name := f"{dim.name[0]}{n}") not in taken)
        outer, inner = Dim(dim.name, dim.size // inner_size), Dim(name, inner_size)
        space = Space(_replaced(space.x, dim, (outer, inner)), _replaced(space.r, dim, (outer, inner)))
        found = substituted(found, {dim: Index.of(outer) * inner_size + Index.of(inner)})
    x, found = merge_neighbours(space.x, found)
    r, found = merge_neighbours(space.r, found)
    return Space(x, r), dict(zip(indices, found, strict=True))


def _split_point(indices: Iterable[Index]) -> tuple[Dim, Integer] | None:
    """A loop that some index divides by a divisor of its size, and that divisor."""
    for index in indices:
        for atom, _ in index.terms:
            if not isinstance(atom, FloorDiv | Mod):
                continue
            terms = atom.numerator.terms
            if len(terms) == 1 and isinstance(terms[0][0], Dim) and terms[0][1] == 1 and atom.numerator.offset == 0:
                dim = terms[0][0]
                if is_multiple(dim.size, atom.divisor) and atom.divisor not in (1, dim.size):
                    return dim, atom.divisor
    return None


def _replaced(dims: tuple[Dim, ...], old: Dim, new: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return tuple(d for dim in dims for d in (new if dim == old else (dim,)))

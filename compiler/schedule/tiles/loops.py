"""Prepare loops for tiling: split them where indices divide, merge contiguous ones, put the unit stride last.

x0 < 64, x1 < 512    load a[512*x0 + x1], store b[512*x0 + x1]      ->  x0 < 32768, a[x0], b[x0]
x0 < 32768           load a[64*(x0 % 512) + x0 // 512]              ->  x0 < 64, x1 < 512, a[64*x1 + x0]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from compiler.ir.index import MOST_KEPT, Dim, FloorDiv, Index, Mod
from compiler.ir.size import Integer, is_multiple
from compiler.schedule.group import Group, Space

#: Splits of one dimension are looked for this often; more is a sign of an index that will not become affine.
_MOST_SPLITS = 8


def simplify_loops(group: Group) -> Group:
    """The same group over loops that are split and merged until as many indices as possible are affine in few loops.

    Dimensions of size one disappear. The loops keep their order, slowest first."""
    run = _drop_ones(group)
    return run if _are_simple(run.space, frozenset(indices_of(run))) else _merge_all(_split_all(run))


@lru_cache(maxsize=MOST_KEPT)
def _are_simple(space: Space, indices: frozenset[Index]) -> bool:
    """Whether nothing is to be split or merged: a scheduler weighs many groups over the same loops."""
    return _split_point(indices) is None and _pair_to_merge(indices, space) is None


def indices_of(group: Group) -> list[Index]:
    return [i.index for member in group.members for i in member.body.instructions if i.index is not None]


def _with_space(group: Group, space: Space, values: dict[Dim, Index]) -> Group:
    members = tuple(replace(member, body=member.body.substitute(values)) for member in group.members)
    return replace(group, space=space, members=members)


def _drop_ones(group: Group) -> Group:
    """Indices never mention a dimension of size one, so leaving it out of the space is all."""
    x = tuple(dim for dim in group.space.x if dim.size != 1)
    r = tuple(dim for dim in group.space.r if dim.size != 1)
    if group.space.r and not r:
        r = group.space.r[-1:]
    # The group itself keeps what it has worked out.
    return group if (x, r) == (group.space.x, group.space.r) else replace(group, space=Space(x, r))


def _split_all(group: Group) -> Group:
    for _ in range(_MOST_SPLITS):
        found = _split_point(indices_of(group))
        if found is None:
            return group
        dim, inner_size = found
        taken = {d.name for d in (*group.space.x, *group.space.r)}
        outer, inner = Dim(dim.name, dim.size // inner_size), Dim(_new_name(dim.name[0], taken), inner_size)
        space = Space(_replaced(group.space.x, dim, (outer, inner)), _replaced(group.space.r, dim, (outer, inner)))
        group = _with_space(group, space, {dim: Index.of(outer) * inner_size + Index.of(inner)})
    return group


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


def _new_name(letter: str, taken: Iterable[str]) -> str:
    number = 0
    while f"{letter}{number}" in taken:
        number += 1
    return f"{letter}{number}"


def _merge_all(group: Group) -> Group:
    while (pair := _pair_to_merge(frozenset(indices_of(group)), group.space)) is not None:
        outer, inner = pair
        whole = _merged(outer, inner)
        sides = (
            tuple(whole if d == outer else d for d in side if d != inner) for side in (group.space.x, group.space.r)
        )
        group = _with_space(group, Space(*sides), _within(whole, outer, inner))
    return group


def _pair_to_merge(indices: frozenset[Index], space: Space) -> tuple[Dim, Dim] | None:
    """A pair of neighbouring loops that run on in every index, the outer one first."""
    for outer, inner in (*pairwise(space.x), *pairwise(space.r)):
        values = _within(_merged(outer, inner), outer, inner)
        if all(_is_no_harder(index, index.substitute(values)) for index in indices):
            return outer, inner
    return None


def _merged(outer: Dim, inner: Dim) -> Dim:
    """The loop of both: it keeps the outer one's name, which its new size makes another Dim."""
    return Dim(outer.name, outer.size * inner.size)


def _within(whole: Dim, outer: Dim, inner: Dim) -> dict[Dim, Index]:
    """Two loops as formulas of the one that they become."""
    position = Index.of(whole)
    return {outer: position // inner.size, inner: position % inner.size}


def _is_no_harder(before: Index, after: Index) -> bool:
    return after.divisions <= before.divisions

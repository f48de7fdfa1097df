"""A concatenation written part by part, by the kernels that make the parts.

    for x: a[x] = ...
    for x: b[x] = ...                        ->    for x: c[0, x] = ...
    for i, x: c[i, x] = i < 1 ? a[x] : b[x]        for x: c[1, x] = ...

A kernel that chooses by its position between results of other kernels cannot run in their loops, as it has more points
than each of them. Where its condition changes its loop is split (index-set splitting: Banerjee, "Loop Transformations
for Restructuring Compilers", 1993): each part is a loop of its own, without the condition, that fills its slice of the
result's memory, and as such it may join the kernel that makes what it reads. What a part needs besides (a norm's scale
and shift, a sum with another tensor) goes with it. So the parts need not be in memory themselves, and what a recurrence
stacks is stored by the steps that make it.

Where no other kernel makes what is chosen between, but several values read one tensor, the parts are as long as the
longest length that divides each of them, and one loop computes all: what two of them need is loaded and computed once.

    for i, x: c[i, x] = i < 1 ? a[x] : a[x] + a[n + x]    ->    for x: c[0, x] = a[x];  c[1, x] = a[x] + a[n + x]

The last part keeps the name of the whole and follows the others, so that what reads the whole waits for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import gcd

from compiler.ir.body import Body, drop_dead
from compiler.ir.choices import without_known_conditions, without_repeated_choices
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import LoopNode
from compiler.ir.ranges import COMPARISONS
from compiler.schedule.group import Group, Member, Space
from compiler.schedule.inline import compose
from compiler.schedule.once import once
from compiler.schedule.units import UnitGraph

#: More parts are no kernel's results: each is a parameter.
MOST_PARTS = 64
#: More equal parts are not made by one loop: the values of each are in registers at one time.
MOST_EQUAL_PARTS = 16


@dataclass(frozen=True)
class ConcatenationParts:
    """What becomes of a kernel: a group for each part, and the nodes that take the place of each node whose result it
    stored, in their order."""

    groups: tuple[Group, ...]
    nodes: Mapping[str, tuple[LoopNode, ...]]


@dataclass(frozen=True)
class _Slice:
    """The points of a space that lie, along some of its loops, from a first one to below an end."""

    bounds: tuple[tuple[Dim, int, int], ...] = ()

    def loops(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """The loops that are left of `dims`."""
        sizes = {dim: end - first for dim, first, end in self.bounds}
        kept = (Dim(dim.name, sizes.get(dim, dim.size)) for dim in dims if sizes.get(dim) != 1)
        return tuple(kept)

    @property
    def values(self) -> Mapping[Dim, Index]:
        """The variables of the loops that it cuts by those of its own."""
        return {
            dim: Index.number(first) if end - first == 1 else Index.of(Dim(dim.name, end - first)) + first
            for dim, first, end in self.bounds
        }

    def of(self, bodies: Mapping[str, Body]) -> dict[str, Body]:
        """The bodies at the points of the slice, where conditions on its loops are known."""
        # Slices are tried one by one, for each layer that joins such parts.
        what = "slice", self.bounds
        return {name: once(partial(self._of, body), what, (body,), ()) for name, body in bodies.items()}

    def _of(self, body: Body) -> Body:
        moved = drop_dead(body.substitute(self.values))
        return without_repeated_choices(without_known_conditions(moved))


def in_parts(group: Group, graph: UnitGraph, taken: Collection[str]) -> ConcatenationParts | None:
    """The parts of a pointwise kernel that chooses by its position between what other kernels have made. None for any
    other kernel. `taken` are names that no part may have."""
    if not _may_be_split(group, graph) or not any(_is_made(buffer, graph) for buffer in group.read_buffers):
        return None
    bodies = _bodies(group)
    slices = _slices(group, bodies, graph) if bodies is not None else []
    if bodies is None or len(slices) < 2:
        return None
    kernels = _kernels([piece.loops(group.space.x) for piece in slices], [piece.of(bodies) for piece in slices])
    return _made_of(group, bodies, slices, kernels, graph, taken)


def in_equal_parts(group: Group, graph: UnitGraph, taken: Collection[str]) -> ConcatenationParts | None:
    """The parts of a pointwise kernel that chooses by its position between values of which several read one tensor,
    all as long as each other, as one kernel: what two of them need is read and computed once. None for any other."""
    bodies = _bodies(group) if _may_be_split(group, graph) else None
    slices = _equal_slices(group, bodies) if bodies is not None else []
    if bodies is None or not slices:
        return None
    return _made_of(group, bodies, slices, [list(range(len(slices)))], graph, taken)


def _bodies(group: Group) -> dict[str, Body] | None:
    """What is stored, each as one body; None where there is none of some of them."""
    bodies = {name: body for name in group.stored if (body := compose(group, name)) is not None}
    return bodies if len(bodies) == len(group.stored) else None


def _equal_slices(group: Group, bodies: Mapping[str, Body]) -> list[_Slice]:
    """The slices of the longest equal length along the one loop at whose variable the bodies' choices change, if
    several of them read one tensor."""
    cuts = {dim: set().union(*(_cuts(body, dim) for body in bodies.values())) for dim in group.space.x}
    found = [(dim, points) for dim, points in cuts.items() if points]
    if len(found) != 1:
        return []
    ((dim, points),) = found
    assert isinstance(dim.size, int)
    # What lies side by side is stored as one tile; see `compiler.schedule.interleaved`.
    is_fast = any(dim in access.fast_dims for body in bodies.values() for access in body.writes)
    length = 1 if is_fast and dim.size <= MOST_EQUAL_PARTS else gcd(dim.size, *points)
    if dim.size // length > MOST_EQUAL_PARTS:
        return []
    slices = [_Slice(((dim, first, first + length),)) for first in range(0, dim.size, length)]
    readers = Counter(
        buffer
        for piece in slices
        for buffer in {access.buffer for body in piece.of(bodies).values() for access in body.reads}
    )
    return slices if any(count > 1 for count in readers.values()) else []


def _may_be_split(group: Group, graph: UnitGraph) -> bool:
    """Whether a kernel may choose between values by its position, and each element that it stores is one of its
    points."""
    if type(group) is not Group or group.space.r or group.updated or group.has_check:
        return False
    # Numbers that are drawn are no arithmetic that a part could repeat, and no member but the parts is left to draw.
    if any(member.body.is_random for member in group.members):
        return False
    if not any(i.op == "where" for member in group.members for i in member.body.instructions):
        return False
    layouts = [graph.layouts[name] for name in group.stored]
    if any(not isinstance(layout.numel, int) or layout.numel != layout.storage_numel for layout in layouts):
        return False
    readers = (graph.units[reader] for name in group.stored for reader in graph.readers[name])
    return not any(isinstance(reader, Group) and not group.stored.isdisjoint(reader.updated) for reader in readers)


def _is_made(buffer: str, graph: UnitGraph) -> bool:
    """Whether a kernel that is neither a product nor several side by side makes a buffer."""
    number = graph.producer.get(buffer)
    return number is not None and type(graph.units[number]) is Group


def _slices(group: Group, bodies: Mapping[str, Body], graph: UnitGraph) -> list[_Slice]:
    """The slices that other kernels make, and what is between them: first along the loop that has most of them, then
    along others that have more of them still, as a matrix has that is stacked out of stacked rows."""
    found, made = [_Slice()], 0
    by_gain = sorted(group.space.x, key=lambda dim: -len(_cut([_Slice()], dim, bodies, graph)[0]))
    for dim in by_gain:
        slices, count = _cut(found, dim, bodies, graph)
        if len(slices) <= MOST_PARTS and count > made:
            found, made = slices, count
    return found


def _cut(slices: Sequence[_Slice], dim: Dim, bodies: Mapping[str, Body], graph: UnitGraph) -> tuple[list[_Slice], int]:
    """The slices cut along one more loop, and how many of them other kernels make, if any is cut; what no other makes
    stays in one slice with what is beside it."""
    found: list[_Slice] = []
    made = 0
    if not isinstance(dim.size, int):
        return list(slices), 0
    for whole in slices:
        cuts = sorted(set().union(*(_cuts(body, dim) for body in whole.of(bodies).values())))
        if not cuts or len(cuts) >= MOST_PARTS:
            found.append(whole)
            made += _is_of_others(whole, bodies, graph) and bool(whole.bounds)
            continue
        was_made = True
        for first, end in pairwise([0, *cuts, dim.size]):
            piece = _Slice((*whole.bounds, (dim, first, end)))
            is_made = _is_of_others(piece, bodies, graph)
            made += is_made
            if is_made or was_made:
                found.append(piece)
            else:
                found[-1] = _Slice((*whole.bounds, (dim, found[-1].bounds[-1][1], end)))
            was_made = is_made
    return found, made


def _is_of_others(piece: _Slice, bodies: Mapping[str, Body], graph: UnitGraph) -> bool:
    return any(_is_made(buffer, graph) for body in piece.of(bodies).values() for buffer in body.loads)


def _cuts(body: Body, dim: Dim) -> Iterator[int]:
    """The points of a loop at which a comparison of its variable with a number changes."""
    for i in body.instructions:
        if i.op not in COMPARISONS:
            continue
        left, right = (body.instructions[operand] for operand in i.operands)
        if left.op != "index_value" or right.op != "constant" or left.index is None:
            continue
        if left.index.terms != ((dim, 1),) or not isinstance(left.index.offset, int) or not isinstance(dim.size, int):
            continue
        assert isinstance(right.value, int)
        cut = right.value - left.index.offset + COMPARISONS[i.op]
        if 0 < cut < dim.size:
            yield cut


def _made_of(
    group: Group,
    bodies: Mapping[str, Body],
    slices: Sequence[_Slice],
    kernels: Sequence[Sequence[int]],
    graph: UnitGraph,
    taken: Collection[str],
) -> ConcatenationParts:
    """The parts of `slices`, in kernels of those at the positions that `kernels` has."""
    nodes = {member.name: member.node for member in group.members}
    of_slices = [piece.of(bodies) for piece in slices]
    last = max(range(len(slices)), key=lambda position: (_latest(of_slices[position].values(), graph), position))
    used = set(taken)
    groups: list[Group] = []
    made: dict[str, list[LoopNode]] = {name: [] for name in bodies}
    loops_of = [piece.loops(group.space.x) for piece in slices]
    for positions in sorted(kernels, key=lambda positions: last in positions):
        loops = loops_of[positions[0]]
        members: list[Member] = []
        for position in sorted(positions, key=lambda position: position == last):
            for whole in sorted(bodies):
                name = whole if position == last else _free_name(f"{whole}_part", used)
                others = frozenset(node.name for node in made[whole]) if position == last else frozenset[str]()
                body, follows = _stored_as(of_slices[position][whole], name), nodes[whole].follows | others
                node = replace(nodes[whole], name=name, x_dims=loops, body=body, part_of=whole, follows=follows)
                members.append(Member(node, node.body))
                made[whole].append(node)
        stored = frozenset(member.name for member in members)
        if last in positions:
            # What was computed on the way to the result has no loop of its own any more.
            gone = [member for member in group.members if member.name not in bodies]
            members = [*(replace(member, body=Body(())) for member in gone), *members]
        groups.append(Group(group.name, Space(loops), tuple(members), stored))
    return ConcatenationParts(tuple(groups), {name: tuple(nodes) for name, nodes in made.items()})


def _kernels(loops: Sequence[tuple[Dim, ...]], of_slices: Sequence[Mapping[str, Body]]) -> list[list[int]]:
    """The slices, by their positions, that are one kernel from the start: one that reads nothing, as a column of ones,
    shares no data with any other, and goes with the one beside it if that has the same loops."""
    found: list[list[int]] = []
    waiting: list[int] = []
    for position, bodies in enumerate(of_slices):
        if any(body.loads for body in bodies.values()):
            alike = [other for other in waiting if loops[other] == loops[position]]
            found += [[other] for other in waiting if other not in alike]
            found.append([position, *alike])
            waiting = []
        elif found and loops[found[-1][0]] == loops[position]:
            found[-1].append(position)
        else:
            waiting.append(position)
    return [*found, *([position] for position in waiting)]


def _latest(bodies: Collection[Body], graph: UnitGraph) -> int:
    """Where the last node stands that makes what the bodies read."""
    return max((graph.position.get(buffer, -1) for body in bodies for buffer in body.loads), default=-1)


def _free_name(base: str, used: set[str]) -> str:
    number = next(n for n in range(len(used) + 1) if f"{base}_{n}" not in used)
    used.add(f"{base}_{number}")
    return f"{base}_{number}"


def _stored_as(body: Body, name: str) -> Body:
    return Body(tuple(replace(i, buffer=name) if i.op == "store" else i for i in body.instructions))

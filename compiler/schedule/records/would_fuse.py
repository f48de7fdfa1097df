"""Find by trial what would have to change for a refused pair to be fused.

Each candidate is one change (the reader's loops in another order, a higher limit, smaller tensors) applied to a copy of
the pair, which the rules are then asked about again. The first one that they fuse is told; nothing is told that was not
tried. A change of a program may change more than the pair (other readers, the order of kernels), so an answer speaks of
the pair as it was when it was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from compiler.decisions import Refuse
from compiler.devices import Device
from compiler.ir.body import Body, Instruction
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import ExternNode, Layout, LoopGraph
from compiler.ir.positions import flatten
from compiler.ir.size import Integer, Undecided
from compiler.schedule.directives import Directives
from compiler.schedule.group import Group, Space
from compiler.schedule.records.classify import forwards, reordered
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Context, Fuse, Limits, can_fuse
from compiler.schedule.rules.batch import side_by_side
from compiler.schedule.units import Unit, UnitGraph

#: Changes that are tried for one pair.
MOST_TRIALS = 16
#: Tensors are made smaller by at most this factor.
SMALLEST_SHARE = 1 << 20

#: Reasons for which two kernels do not share a launch, though nothing forbids it.
_OF_LAUNCHES = ("policy.batch_size", "profit.long_reduction", "profit.kept_longer")

Change = tuple[str, "Pair"]


class PairGraph(UnitGraph):
    """A graph of two units alone, with what the rest of the graph wanted of them."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(LoopGraph())
        self.units = dict(enumerate(pair.units))
        self.layouts, self.outputs = pair.layouts, pair.needed
        self.position = pair.position
        self._is_vertical = pair.is_vertical

    def number_of(self, unit: Unit) -> int:
        return 0 if unit.produced <= self.units[0].produced else 1

    def must_precede(self, a: int, b: int) -> bool:
        return self._is_vertical and (a, b) == (0, 1)

    def between(self, a: int, b: int) -> int | None:
        return None


@dataclass(frozen=True)
class Pair:
    """A refused pair, and all that the rules may ask about it."""

    units: tuple[Unit, Unit]
    layouts: dict[str, Layout]
    position: dict[str, int]
    needed: frozenset[str]
    is_vertical: bool
    device: Device
    limits: Limits
    disabled: frozenset[str]
    directives: Directives
    #: Whether the two were to share a launch, each with loops of its own.
    is_side_by_side: bool = False

    @staticmethod
    def of(decision: Decision, graph: LoopGraph, context: Context) -> Pair:
        """The pair of a decision, in the graph and under the limits in which it was refused."""
        return Pair(
            units=(decision.one, decision.two),
            layouts=graph.buffers,
            position={node.name: number for number, node in enumerate(graph.nodes)},
            needed=decision.needed,
            is_vertical=decision.is_vertical,
            device=context.device,
            limits=context.limits,
            disabled=context.disabled,
            directives=context.directives,
            is_side_by_side=decision.verdict.reason in _OF_LAUNCHES or "parts" in decision.verdict.numbers,
        )

    def ask(self) -> Fuse | Refuse:
        context = Context(PairGraph(self), self.device, self.limits, self.disabled, self.directives)
        return side_by_side(0, 1, context) if self.is_side_by_side else can_fuse(0, 1, context)


def would_fuse_if(decision: Decision, pair: Pair) -> str:
    """The end of the sentence "it would fuse if ...", or nothing where no change that was tried is enough."""
    find = _CHANGES.get(decision.verdict.reason)
    if find is None or not isinstance(decision.verdict, Refuse):
        return ""
    for sentence, changed in islice(find(decision, pair), MOST_TRIALS):
        try:
            answer = changed.ask()
        except Undecided:
            continue
        if isinstance(answer, Fuse):
            return sentence
    return ""


# --- dependencies, limits, profit


def _without_third(decision: Decision, pair: Pair) -> Iterator[Change]:
    yield f"`{decision.verdict.numbers['between']}` did not need to run between the two", pair


def _one_stream(decision: Decision, pair: Pair) -> Iterator[Change]:
    one, two = pair.units
    yield "the program put both on one stream", replace(pair, units=(one, _on_stream(two, one.stream)))


def _on_stream(unit: Unit, stream: int | None) -> Unit:
    if isinstance(unit, ExternNode):
        return replace(unit, stream=stream)
    members = (replace(member, node=replace(member.node, stream=stream)) for member in unit.members)
    return replace(unit, members=tuple(members))


def _larger_group(decision: Decision, pair: Pair) -> Iterator[Change]:
    nodes = decision.verdict.numbers["nodes"]
    sentence = f"the largest group had {nodes} nodes"
    yield sentence, replace(pair, limits=replace(pair.limits, most_nodes=nodes, most_nodes_of_parts=nodes))


def _more_buffers(decision: Decision, pair: Pair) -> Iterator[Change]:
    buffers = decision.verdict.numbers["buffers"]
    sentence = f"the two touched at most {decision.verdict.numbers['limit']} buffers in all, not {buffers}"
    yield sentence, replace(pair, limits=replace(pair.limits, most_buffers=buffers))


def _rule_allowed(decision: Decision, pair: Pair) -> Iterator[Change]:
    knob = decision.verdict.numbers["knob"]
    yield f"the rule {knob} were not turned off", replace(pair, disabled=pair.disabled - {knob})


def _not_forbidden(decision: Decision, pair: Pair) -> Iterator[Change]:
    one, two = (decision.verdict.numbers[f"forbidden_{side}"] for side in "ab")
    yield f"`forbid` did not name {one} and {two}", replace(pair, directives=replace(pair.directives, forbidden=()))


def _smaller_tensors(decision: Decision, pair: Pair) -> Iterator[Change]:
    apart = decision.verdict.numbers["bytes_apart"]
    for share, smaller in _smaller(pair):
        yield (
            f"the two moved less than {apart // share:,} bytes instead of {apart:,}: a launch would weigh more",
            smaller,
        )


def _shorter_reduction(decision: Decision, pair: Pair) -> Iterator[Change]:
    slow, moved = decision.verdict.numbers["slow"], decision.verdict.numbers["bytes"]
    for share, smaller in _smaller(pair):
        yield f"the kernel of `{slow}` moved less than {moved // share:,} bytes instead of {moved:,}", smaller


def _smaller(pair: Pair) -> Iterator[tuple[int, Pair]]:
    """A kernel of a k-th of the data takes what this one would take on a device that is k times as fast."""
    share, device = 2, pair.device
    while share <= SMALLEST_SHARE:
        faster = replace(
            device,
            bandwidth=device.bandwidth * share,
            multiprocessor_bandwidth=device.multiprocessor_bandwidth * share,
            l2_bandwidth=device.l2_bandwidth * share,
            l2_bytes=device.l2_bytes * share,
            flops=device.flops * share,
        )
        yield share, replace(pair, device=faster)
        share *= 4


def _shorter_row(decision: Decision, pair: Pair) -> Iterator[Change]:
    """A row of a k-th of the elements takes the registers that this one takes of a device that has k times as many."""
    row = decision.verdict.numbers["row"]
    share, device = 2, pair.device
    while share <= row:
        larger = replace(device, registers_per_multiprocessor=device.registers_per_multiprocessor * share)
        sentence = f"a row had at most {row // share:,} elements instead of {row:,}: its sums would fit into registers"
        yield sentence, replace(pair, device=larger)
        share *= 2


def _larger_launch(decision: Decision, pair: Pair) -> Iterator[Change]:
    parts, buffers = decision.verdict.numbers["parts"], decision.verdict.numbers["buffers"]
    limits = replace(pair.limits, most_parts=parts, most_part_buffers=buffers)
    yield f"one launch might hold {parts} kernels with {buffers} buffers", replace(pair, limits=limits)


def _small_result(decision: Decision, pair: Pair) -> Iterator[Change]:
    numbers = decision.verdict.numbers
    early, limit, more = numbers["early"], numbers["limit"], numbers["bytes"]
    yield f"what `{early}` makes took at most {limit:,} bytes more at a time, not {more:,}", pair


def _asked_for(decision: Decision, pair: Pair) -> Iterator[Change]:
    if any(node.part_of is not None for unit in pair.units if isinstance(unit, Group) for node in unit.nodes):
        return  # The whole is not written part by part where a directive is about it.
    yield f"`force` named {decision.a} and {decision.b}: then they come first", pair


# --- index expressions and shapes


def _other_reads(decision: Decision, pair: Pair) -> Iterator[Change]:
    """The second unit reading what is shared in other ways."""
    two = pair.units[1]
    if not isinstance(two, Group) or not decision.shared:
        return
    buffer, reader = decision.shared[0], decision.b
    reads = list(dict.fromkeys(a.index for m in two.members for a in m.body.reads if a.buffer == buffer))
    for read in reads:
        if forwards(read) != read:
            sentence = f"`{reader}` read `{buffer}` forwards, at {forwards(read)} instead of {read}"
            yield sentence, _reading(pair, buffer, {read: forwards(read)})
    for read in reads:
        for other in reordered(read, read.dims):
            # What is inside by the sizes of a call is no advice.
            if other.is_within(0, pair.layouts[buffer].storage_numel):
                sentence = f"`{reader}` read `{buffer}` with its loops in another order, at {other} instead of {read}"
                yield sentence, _reading(pair, buffer, {read: other})
    if len(reads) > 1:
        # An index that is loaded is known from its load on, which may come after the other reads.
        for read in (read for read in reads if not read.indirections):
            yield f"`{reader}` read `{buffer}` at {read} only", _reading(pair, buffer, dict.fromkeys(reads, read))
    in_order = _row_major(two.space)
    sentence = f"`{reader}` read `{buffer}` in the order in which it is written"
    yield sentence, _reading(pair, buffer, dict.fromkeys(reads, in_order))


def _reading(pair: Pair, buffer: str, indices: Mapping[Index, Index]) -> Pair:
    """The pair with the second unit's loads of `buffer` moved elsewhere."""
    one, two = pair.units
    assert isinstance(two, Group)
    members = tuple(replace(m, body=_with_loads(m.body, buffer, indices)) for m in two.members)
    return replace(pair, units=(one, replace(two, members=members)))


def _with_loads(body: Body, buffer: str, indices: Mapping[Index, Index]) -> Body:
    def moved(i: Instruction) -> Instruction:
        if i.op != "load" or i.buffer != buffer or i.index is None:
            return i
        return replace(i, index=indices.get(i.index, i.index))

    return Body(tuple(map(moved, body.instructions)))


def _row_major(space: Space) -> Index:
    return flatten([Index.of(dim) for dim in space.dims], [dim.size for dim in space.dims])


def _same_axis(decision: Decision, pair: Pair) -> Iterator[Change]:
    """The second unit, of one reduction, run over the first one's loops."""
    one, two = pair.units
    if not isinstance(one, Group) or not isinstance(two, Group) or len(two.members) != 1:
        return
    if (len(one.space.x), len(one.space.r)) != (len(two.space.x), len(two.space.r)) or not decision.shared:
        return
    buffer = decision.shared[0]
    first = next((a.index for m in one.members for a in m.body.reads if a.buffer == buffer), None)
    if first is None or first.indirections:
        return
    renamed = {old: Index.of(new) for old, new in zip(two.space.dims, one.space.dims, strict=True)}
    (member,) = two.members
    body = member.body.substitute(renamed)
    body = _with_loads(body, buffer, {a.index: first for a in body.reads if a.buffer == buffer})
    changed = replace(two, space=one.space, members=(replace(member, body=body),))
    axes = _dimensions(first, one.space.r, pair.layouts[buffer])
    along = (
        f"along dimension {axes} of `{buffer}`, as `{decision.a}` does" if axes else f"along the axis of `{decision.a}`"
    )
    yield f"the reduction of `{decision.b}` ran {along}", replace(pair, units=(one, changed))


def _dimensions(index: Index, dims: tuple[Dim, ...], layout: Layout) -> str:
    """Which dimensions of a tensor these loops run through, where each is one of them."""
    strides = {stride: axis for axis, stride in enumerate(layout.stride) if layout.shape[axis] != 1}
    axes = [strides.get(index.coefficient(dim)) for dim in dims]
    return "" if None in axes else " and ".join(str(axis) for axis in sorted(axis for axis in axes if axis is not None))


def _as_many_iterations(decision: Decision, pair: Pair) -> Iterator[Change]:
    """The outermost loop of one unit as long as it must be for both to run over as many points."""
    for position in (1, 0):
        one, other = pair.units[position], pair.units[1 - position]
        if not isinstance(one, Group) or not isinstance(other, Group) or not one.space.x:
            continue
        outer, name = one.space.x[0], (decision.a, decision.b)[position]
        for wanted in (other.space.numel, other.space.numel * other.space.reduction_numel):
            size = _length(outer.size, one.space.numel * one.space.reduction_numel, wanted)
            if size is None:
                continue
            resized, starts_elsewhere = _resized(one, outer, size)
            counts = (
                f"once instead of {outer.size:,} times" if size == 1 else f"{size:,} times instead of {outer.size:,}"
            )
            sentence = f"the outer loop of `{name}` ran {counts}"
            sentence += " and read from the first element on" if starts_elsewhere else ""
            yield sentence, replace(pair, units=(other, resized) if position else (resized, other))


def _length(outer: Integer, points: Integer, wanted: Integer) -> int | None:
    """What the outer loop must run for `points` to become `wanted`."""
    if not isinstance(points, int) or not isinstance(wanted, int) or not isinstance(outer, int) or points == 0:
        return None
    size, rest = divmod(wanted * outer, points)
    return None if rest or size in (0, outer) else size


def _resized(group: Group, outer: Dim, size: int) -> tuple[Group, bool]:
    """The group with one loop of another length, all accesses from the first element on, and whether that was new."""
    new = Dim(outer.name, size)
    space = Space(tuple(new if dim == outer else dim for dim in group.space.x), group.space.r)
    from_first = {outer: Index.of(new)}

    def moved(index: Index) -> Index:
        index = index.substitute(from_first)
        return index - index.offset if isinstance(index.offset, int) else index

    accesses = [access for m in group.members for access in (*m.body.reads, *m.body.writes)]
    starts_elsewhere = any(access.index.offset != 0 for access in accesses)
    members = tuple(replace(m, body=m.body.map_indices(moved)) for m in group.members)
    return replace(group, space=space, members=members), starts_elsewhere


_CHANGES: dict[str, Callable[[Decision, Pair], Iterator[Change]]] = {
    "dependency.intermediate": _without_third,
    "kind.other_stream": _one_stream,
    "policy.group_size": _larger_group,
    "policy.disabled": _rule_allowed,
    "policy.forbidden": _not_forbidden,
    "profit.too_many_buffers": _more_buffers,
    "profit.slower": _smaller_tensors,
    "profit.registers": _shorter_row,
    "profit.long_reduction": _shorter_reduction,
    "profit.kept_longer": _small_result,
    "policy.batch_size": _larger_launch,
    "policy.outscored": _asked_for,
    "index.different_positions": _other_reads,
    "index.no_common_loops": _other_reads,
    "shape.reduction_axes": _same_axis,
    "shape.numel": _as_many_iterations,
}

"""Our kernels and TorchInductor's, aligned by the nodes that both compute, with the decision of ours that explains what
is different.

What both compute again in several kernels belongs to the first of them, and what only one of the two computes, as a
view that the other writes out, moves no boundary: sets are compared by the nodes that both have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compiler.matched_kernels import partition, relation_of
from compiler.refusals import at_stake
from compiler.report import AlignedKernels, Graph, Kernel, PeerKernel, PeerRefusal
from compiler.report.peers import Relation
from compiler.wording import counted, listed

_RELATIONS: dict[str, Relation] = {"only before": "only ours", "only after": "only theirs"}
_Reason = tuple[str, int | None, tuple[str, str] | None]


def aligned(
    graphs: Sequence[Graph], kernels: Sequence[PeerKernel], refusals: Sequence[PeerRefusal], peer: str
) -> list[AlignedKernels]:
    """Every kernel of both, the differences first: those that a decision explains, then others, then kernels that only
    one of the two has. A difference that equal layers share is told once."""
    found = [one for graph in graphs if graph.kernels for one in _of_graph(graph, kernels, refusals, peer)]
    _count(found)
    return sorted(found, key=_rank)


def _of_graph(
    graph: Graph, kernels: Sequence[PeerKernel], refusals: Sequence[PeerRefusal], peer: str
) -> list[AlignedKernels]:
    positions = [position for position, kernel in enumerate(kernels) if kernel.graph == graph.name]
    if not positions:
        return []
    ours = _held_first(graph.kernels, "ours ")
    theirs = _held_first([kernels[position] for position in positions], "theirs ")
    both = set().union(*ours) & set().union(*theirs)
    befores, afters = ([held & both or held for held in side] for side in (ours, theirs))
    order = {node.name: position for position, node in enumerate(graph.aten)}
    result = []
    for firsts, seconds in partition(befores, afters):
        change = relation_of([befores[i] for i in firsts], [afters[i] for i in seconds])
        held = set().union(*(befores[i] for i in firsts), *(afters[i] for i in seconds))
        if any(name.startswith(_AGAIN) for name in held):
            held = {n for i in firsts for n in graph.kernels[i].origins}
            held |= {n for i in seconds for n in kernels[positions[i]].origins}
        one = AlignedKernels(
            graph=graph.name,
            relation=_RELATIONS.get(change, change),  # type: ignore[arg-type]  # the others are named alike
            nodes=sorted(held, key=lambda name: order.get(name, len(order))),
            ours=firsts,
            theirs=[positions[i] for i in seconds],
        )
        if one.relation != "same":
            one.sentence = _sentence(one, kernels, peer)
            one.because, one.decision, one.pair = _reason(graph, one)
            one.refusal = _words(one, refusals)
        result.append(one)
    return result


#: Stands for a kernel that only computes again what one before it does: no node's name holds a space.
_AGAIN = "again "


def _held_first(kernels: Iterable[Kernel], side: str) -> list[set[str]]:
    """The nodes of each kernel that no kernel of its side before it computes; of one that has no such, a name of its
    own, or it would tie others together. One that is not exact is tied to all of its nodes: it is a piece of them."""
    taken: set[str] = set()
    held = []
    for position, kernel in enumerate(kernels):
        if isinstance(kernel, PeerKernel) and not kernel.is_exact:
            held.append(set(kernel.origins))
            continue
        held.append(set(kernel.origins) - taken or {f"{_AGAIN}{side}{position}"})
        taken.update(kernel.origins)
    return held


def _sentence(one: AlignedKernels, kernels: Sequence[PeerKernel], peer: str) -> str:
    named = listed([f"K{position + 1}" for position in one.ours])
    in_kernels = "in one kernel" if len(one.theirs) == 1 else f"in {counted(len(one.theirs), 'kernel')}"
    if one.relation == "only theirs":
        name = kernels[one.theirs[0]].name if one.theirs else "a kernel"
        return f"{peer} launches {name} for {listed(one.nodes[:3])}. Ours launches none for it."
    if one.relation == "only ours":
        return f"{named} computes {listed(one.nodes[:3])}. {peer} has no kernel for that alone."
    is_cut_anew = min(len(one.ours), len(one.theirs)) > 1
    return f"{peer} computes {named} {in_kernels}{', cut at other places' if is_cut_anew else ''}."


def _reason(graph: Graph, one: AlignedKernels) -> _Reason:
    """What decided between the kernels that the other compiler cuts otherwise, of those with most bytes at stake; of
    one kernel that it splits, the fusion of ours that saved most."""
    if one.relation == "only theirs":
        gone = next((removed for removed in graph.removed if removed.node in one.nodes), None)
        return (f"Ours needs no kernel for {gone.node}: {gone.because}." if gone else "", None, None)
    if one.relation == "only ours":
        return ("", None, None)
    if len(one.ours) > 1:
        apart = (refusal.decisions[0] for refusal in graph.refusals if set(refusal.kernels) <= set(one.ours))
        number, verb = next(apart, None), "Ours keeps {} and {} apart"
    else:
        nodes = {node for position in one.ours for node in graph.kernels[position].nodes}
        fused = (n for n, d in enumerate(graph.decisions) if d.verdict == "fused" and nodes >= {d.a, d.b})
        number, verb = max(fused, key=lambda n: at_stake(graph.decisions[n]), default=None), "Ours fuses {} and {}"
    if number is None:
        return ("", None, None)
    decision = graph.decisions[number]
    pair = (decision.a, decision.b)
    return (f"{verb.format(*pair)}: {decision.message.rstrip('.')}.", number, pair)


def _words(one: AlignedKernels, refusals: Sequence[PeerRefusal]) -> str:
    """What the other compiler said of the two kernels of this set that lie nearest."""
    told = [refusal for refusal in refusals if set(refusal.kernels) <= set(one.theirs)]
    nearest = min(told, key=lambda refusal: abs(refusal.kernels[1] - refusal.kernels[0]), default=None)
    return f"{nearest.a} and {nearest.b}: {nearest.message}" if nearest is not None else ""


def _count(found: Sequence[AlignedKernels]) -> None:
    """Numbers in names count the layers."""
    firsts: dict[tuple[object, ...], AlignedKernels] = {}
    for one in found:
        if one.relation == "same":
            continue
        names = tuple(re.sub(r"_?\d+", "", name) for name in one.nodes)
        first = firsts.setdefault((one.graph, one.relation, len(one.ours), len(one.theirs), names), one)
        if first is not one:
            first.count, one.count = first.count + 1, 0


def _rank(one: AlignedKernels) -> int:
    if one.relation == "same":
        return 3
    return 2 if one.relation in ("only ours", "only theirs") else 0 if one.because else 1

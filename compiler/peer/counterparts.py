"""Which node of our ATen graph computes what a node of TorchInductor's does.

Both graphs come from one graph of Dynamo, but decompositions and rewrites differ, so that names do not agree: the
second `mul` of one may be the third of the other. Nodes are matched by what they compute, in five steps, each over what
the steps before it left: the same operator on the same operands, from the inputs on; the same operator, shape, dtype
and lines in the same order; the same in any order; the same operator on the same lines; and, of what a rewrite of
theirs made, which has no line, the same operator with the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from compiler.report import FxNode, Graph

#: Operators that are one another's, by whichever graph has which.
_SAME = {
    "_unsafe_view": "view", "reshape": "view", "_reshape_alias": "view",
    "t": "permute", "transpose": "permute",
    "_to_copy": "convert_element_type", "to": "convert_element_type",
    "_softmax": "softmax", "var": "var_mean",
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.%])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")
#: Beyond so many nodes the two sequences are not aligned: that takes their product.
_MOST_ALIGNED = 4_000


def counterparts(
    theirs: Sequence[FxNode], ours: Sequence[FxNode], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The name of each of their nodes that has a counterpart → the name of ours. `given` has those of inputs that are
    not named alike: of a backward graph, what the forward graph saved.

    No two have the same one, but for equal operators on equal operands, which one of the graphs may hold twice."""
    values = {node.name: (given or {}).get(node.name, node.name) for node in theirs if node.op == "placeholder"}
    left, right = (
        _Side(theirs, values),
        _Side(ours, {node.name: node.name for node in ours if node.op == "placeholder"}),
    )
    found: dict[str, str] = {}
    _match_equal(left.calls, right.calls, (left.value, right.value), found, shared=True)
    if len(left.calls) + len(right.calls) <= 2 * _MOST_ALIGNED:
        _match_in_order(left.calls, right.calls, found)
    for key in (_likeness, _family_and_line):
        _match_equal(_without(left.calls, found), _without(right.calls, found.values()), (key, key), found)
    rest = [node for node in _without(left.calls, found) if not node.lines]
    _match_equal(rest, _without(right.calls, found.values()), (_family_and_shape, _family_and_shape), found)
    return found


def taken_over(theirs: Sequence[FxNode], ours: Sequence[FxNode], names: Mapping[str, str]) -> dict[str, str]:
    """Nodes of theirs without a counterpart → the call that a rewrite of ours made of them: it reads what they do, and
    is of their lines."""
    alone = _without((node for node in ours if node.op == "call_function"), names.values())
    reader = {argument: node for node in reversed(alone) for argument in node.args}
    found: dict[str, FxNode] = {}
    for node in theirs:
        if node.name not in names:
            reached = (found.get(argument) or reader.get(names.get(argument, "")) for argument in node.args)
            made = next((one for one in reached if one and set(node.lines[-1:]) <= set(one.lines)), None)
            found |= {node.name: made} if made else {}
    return {name: made.name for name, made in found.items()}


def put_together(theirs: Sequence[FxNode], ours: Sequence[FxNode], names: Mapping[str, str], name: str) -> list[str]:
    """The calls of ours that a rewrite of theirs made this one of, such as the product and the sum of an `addmm`: what
    the counterparts of its readers read in its place. None where a node beside it has no counterpart either, since both
    may share them."""
    alone = {node.name for node in _without(theirs, names) if node.op == "call_function"}
    if name not in alone or any(node.name == name and alone & set(node.args) for node in theirs):
        return []
    takes = {node.name: node.args for node in ours}
    spare = {node.name for node in _without(ours, names.values()) if node.op == "call_function"}
    found: set[str] = set()
    for reader in theirs:
        arguments = takes.get(names.get(reader.name, reader.name if reader.op == "output" else ""), [])
        if len(arguments) == len(reader.args):
            found.update(one for one, other in zip(arguments, reader.args, strict=True) if other == name)
    reached = found = found & spare
    while reached:
        reached = {argument for one in reached for argument in takes[one]} & spare - found
        found |= reached
    return [node.name for node in ours if node.name in found]


def nearest(theirs: Sequence[FxNode], names: Mapping[str, str], start: Iterable[str]) -> list[str]:
    """Nodes of ours that a kernel stands for where none of its own has a counterpart: those of the nearest nodes that
    its values come from, or else go to."""
    takes = {node.name: node.args for node in theirs}
    gives: dict[str, list[str]] = {}
    for name, arguments in takes.items():
        for argument in arguments:
            gives.setdefault(argument, []).append(name)
    for step in (takes, gives):
        reached, seen = list(start), set(start)
        while reached:
            found = [names[name] for name in reached if name in names]
            if found:
                return list(dict.fromkeys(found))
            reached = [n for name in reached for n in step.get(name, ()) if n not in seen]
            seen.update(reached)
    return []


def on_lines(graph: Graph, lines: Iterable[int]) -> list[str]:
    """What stands for a kernel of a graph where no node has a counterpart, as where a rewrite of ours took all of it:
    the nodes of its lines, or else all."""
    wanted = set(lines)
    calls = [node for node in graph.aten if node.op == "call_function"]
    return [node.name for node in calls if wanted & set(node.lines)] or [node.name for node in calls]


class _Side:
    """One graph: its calls, and the value of each node as far as it is known."""

    def __init__(self, nodes: Sequence[FxNode], inputs: Mapping[str, Hashable]) -> None:
        self.calls = [node for node in nodes if node.op == "call_function"]
        self.values = dict(inputs)

    def value(self, node: FxNode) -> Hashable:
        """The operator on the values of its operands, which come before it; a hash, or the value of a long chain would
        be as long."""
        if node.name not in self.values:
            operands = tuple(self.values.get(argument, argument) for argument in node.args)
            constants = tuple(_NUMBER.findall(node.text.partition("(")[2]))
            self.values[node.name] = hash((_likeness(node), operands, constants))
        return self.values[node.name]


_Key = Callable[[FxNode], Hashable]


def _match_equal(
    theirs: Sequence[FxNode],
    ours: Sequence[FxNode],
    keys: tuple[_Key, _Key],
    found: dict[str, str],
    shared: bool = False,
) -> None:
    """Nodes with equal keys, in order. If they may be `shared`, the last of ours stands for all the rest of theirs."""
    waiting: dict[Hashable, list[str]] = {}
    for node in ours:
        waiting.setdefault(keys[1](node), []).append(node.name)
    for node in theirs:
        names = waiting.get(keys[0](node))
        if names:
            found[node.name] = names[0] if shared and len(names) == 1 else names.pop(0)


def _match_in_order(theirs: Sequence[FxNode], ours: Sequence[FxNode], found: dict[str, str]) -> None:
    """Like nodes between those that are matched already, as lines of a text diff are."""
    reached = set(found.values())
    first: list[Hashable] = [found.get(node.name, _likeness(node)) for node in theirs]
    second: list[Hashable] = [node.name if node.name in reached else _likeness(node) for node in ours]
    for start, other, length in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        for step in range(length):
            found.setdefault(theirs[start + step].name, ours[other + step].name)


def _without(nodes: Iterable[FxNode], names: Iterable[str]) -> list[FxNode]:
    known = set(names)
    return [node for node in nodes if node.name not in known]


def _likeness(node: FxNode) -> tuple[Hashable, ...]:
    return family_of(node), tuple(node.shape or ()), node.dtype, tuple(node.lines)


def _family_and_line(node: FxNode) -> tuple[Hashable, ...]:
    return family_of(node), tuple(node.lines)


def _family_and_shape(node: FxNode) -> tuple[Hashable, ...]:
    return family_of(node), tuple(node.shape or ())


def family_of(node: FxNode) -> str:
    """`var_mean` of `aten.var_mean.correction`."""
    parts = node.target.split(".")
    name = parts[1] if len(parts) > 1 and parts[0] in ("aten", "prims", "operator") else parts[-1]
    return _SAME.get(name, name)

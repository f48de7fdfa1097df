"""Masks of sizes that differ from call to call, known by their form: what a tensor holds at each element, as a rule.

    arange(n)                          the coordinate along the last dimension
    arange(n)[:, None] + 0 >= 0        the same everywhere: true
    columns <= rows                    true up to a diagonal
    tril(ones(n, n))                   one up to a diagonal, and zero beyond it

Dimensions are counted from the end, as broadcasting does, so that -1 is that of the keys in every mask. A rule is a
proof for all sizes: what is not understood has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from compiler.passes.rewrite.calls import argument, changes_memory, operands, operation, shape_of, tensor_of
from compiler.passes.rewrite.constants import memory_behind


@dataclass(frozen=True)
class Same:
    """One number everywhere."""

    number: int | float | bool


@dataclass(frozen=True)
class Coordinate:
    """The coordinate along dimension `dim`, counted from 0, and `offset`."""

    dim: int
    offset: int = 0


@dataclass(frozen=True)
class UpTo:
    """True, or one, where the coordinate along `left` is at most the one along `right`, and `offset`; elsewhere false,
    or zero."""

    left: int
    right: int
    offset: int = 0


Rule = Same | Coordinate | UpTo


def opposite(rule: Rule | None) -> Rule | None:
    """The rule of the values that are false, or zero, where those of `rule` are not."""
    if isinstance(rule, UpTo):
        return UpTo(rule.right, rule.left, -rule.offset - 1)
    return Same(not rule.number) if isinstance(rule, Same) else None


_COMPARISONS = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt, "eq": operator.eq,
                "ne": operator.ne}  # fmt: skip


def rule_of(node: Any) -> Rule | None:
    """The rule by which a node's values are known for all sizes. None where none is known."""
    if not isinstance(node, Node) or tensor_of(node) is None:
        return None
    rules = _Rules()
    found = rules.of(node)
    changed = [other for other in node.graph.nodes if changes_memory(other)]
    is_changed = any(known in memory_behind(other) for other in changed for known in rules.seen)
    return None if is_changed else found


class _Rules:
    def __init__(self) -> None:
        self.seen: dict[Node, Rule | None] = {}

    def of(self, value: Any) -> Rule | None:
        if isinstance(value, int | float | bool):
            return Same(value)
        if not isinstance(value, Node) or tensor_of(value) is None or changes_memory(value):
            return None
        if value not in self.seen:
            self.seen[value] = None  # none of its own readers
            find = _FINDERS.get(operation(value) or "")
            self.seen[value] = None if find is None else find(self, value)
        return self.seen[value]

    def arange(self, node: Node) -> Rule | None:
        start, step = (node.args[0] if len(node.args) > 1 else 0), argument(node, 2, "step", 1)
        if "start" in node.kwargs or start != 0 or step != 1 or not _is_whole(node):
            return None
        return Coordinate(-1) if not _is_one(shape_of(node)[-1]) else Same(0)

    def ones(self, node: Node) -> Rule | None:
        return _as_dtype(Same(1), node)

    def zeros(self, node: Node) -> Rule | None:
        return _as_dtype(Same(0), node)

    def full(self, node: Node) -> Rule | None:
        fill = argument(node, 2 if operation(node) == "new_full" else 1, "fill_value")
        return _as_dtype(Same(fill), node) if isinstance(fill, int | float | bool) else None

    def cast(self, node: Node) -> Rule | None:
        rule = self.of(node.args[0])
        before, after = tensor_of(node.args[0]), tensor_of(node)
        assert after is not None
        if isinstance(rule, Same):
            return _as_dtype(rule, node)
        if isinstance(rule, UpTo):
            return None if after.is_complex() else rule
        return rule if before is not None and before.dtype == after.dtype else None

    def shift(self, node: Node) -> Rule | None:
        first, second = map(self.of, operands(node))
        sign = 1 if operation(node) == "add" else -1
        if node.kwargs.get("alpha", 1) != 1 or not isinstance(second, Same) or not _is_whole(node):
            return None
        if isinstance(first, Coordinate):
            return replace(first, offset=first.offset + sign * int(second.number))
        return Same(first.number + sign * second.number) if isinstance(first, Same) else None

    def compare(self, node: Node) -> Rule | None:
        first, second = map(self.of, operands(node))
        name = operation(node) or ""
        if isinstance(first, Same) and isinstance(second, Same):
            return Same(bool(_COMPARISONS[name](first.number, second.number)))
        if isinstance(first, Coordinate) and isinstance(second, Same):
            return _of_coordinate_and_number(name, first.offset, second.number)
        if isinstance(first, Coordinate) and isinstance(second, Coordinate):
            return _of_coordinates(name, first, second)
        if isinstance(first, UpTo) and isinstance(second, Same) and name in ("eq", "ne") and second.number in (0, 1):
            return first if (name == "eq") == (second.number == 1) else opposite(first)
        return None

    def both(self, node: Node) -> Rule | None:
        value = tensor_of(node)
        if value is None or value.dtype != torch.bool:
            return None
        first, second = map(self.of, operands(node))
        for one, other in ((first, second), (second, first)):
            if one == Same(True):
                return other
            if one == Same(False):
                return one
        return first if first == second else None

    def negate(self, node: Node) -> Rule | None:
        rule, value = self.of(node.args[0]), tensor_of(node)
        return opposite(rule) if value is not None and value.dtype == torch.bool else None

    def triangle(self, node: Node) -> Rule | None:
        diagonal = argument(node, 1, "diagonal", 0)
        if self.of(node.args[0]) != Same(1) or not isinstance(diagonal, int):
            return None
        return UpTo(-1, -2, diagonal) if operation(node) == "tril" else UpTo(-2, -1, -diagonal)

    def expand(self, node: Node) -> Rule | None:
        return self.of(node.args[0])  # what repeats is no coordinate: a size of one has been the same everywhere

    def repeat(self, node: Node) -> Rule | None:
        rule, times = self.of(node.args[0]), node.args[1:]
        times = tuple(times[0]) if len(times) == 1 and isinstance(times[0], list | tuple) else times
        return rule if isinstance(rule, Same) or (isinstance(rule, Coordinate) and times[rule.dim] == 1) else None

    def unsqueeze(self, node: Node) -> Rule | None:
        rank, dim = len(shape_of(node)), argument(node, 1, "dim")
        kept = [axis for axis in range(rank) if axis != dim % rank]
        return _moved(self.of(node.args[0]), kept, rank)

    def getitem(self, node: Node) -> Rule | None:
        source, index = node.args
        index = index if isinstance(index, tuple) else (index,)
        rule = self.of(source)
        if rule is None or isinstance(rule, Same) or not isinstance(source, Node):
            return rule
        if all(isinstance(item, Node) for item in index):
            return self._picked(rule, index, len(shape_of(source)))
        return _sliced(rule, index, len(shape_of(source)), len(shape_of(node)))

    def _picked(self, rule: Coordinate | UpTo, index: tuple[Any, ...], rank: int) -> Rule | None:
        if not isinstance(rule, Coordinate) or len(index) != rank:
            return None
        found = self.of(index[rule.dim])
        if isinstance(found, Coordinate) and found.offset >= 0:
            return replace(found, offset=found.offset + rule.offset)
        return Same(found.number + rule.offset) if isinstance(found, Same) and found.number >= 0 else None

    def diff(self, node: Node) -> Rule | None:
        """With what comes before put first: coordinates differ by one, if the one before the first does."""
        rule, before = self.of(node.args[0]), self.of(node.kwargs.get("prepend"))
        dim = argument(node, 2, "dim", -1)
        dim = dim if dim < 0 else dim - len(shape_of(node))
        is_plain = argument(node, 1, "n", 1) == 1 and node.kwargs.get("append") is None
        if not is_plain or not isinstance(rule, Coordinate) or rule.dim != dim or before != Same(rule.offset - 1):
            return None
        first = tensor_of(node.kwargs["prepend"])
        return Same(1) if first is not None and _is_one(first.shape[dim]) else None

    def interpolate(self, node: Node) -> Rule | None:
        return self.of_same(node) if argument(node, 3, "mode", "nearest") == "nearest" else None

    def of_same(self, node: Node) -> Rule | None:
        """What is the same everywhere is so in any shape. A view in another dtype is another number."""
        rule, before, after = self.of(node.args[0]), tensor_of(node.args[0]), tensor_of(node)
        is_kept = before is not None and after is not None and before.dtype == after.dtype
        return rule if is_kept and isinstance(rule, Same) else None

    def cumsum(self, node: Node) -> Rule | None:
        rule = self.of(node.args[0])
        return Same(0) if isinstance(rule, Same) and rule.number == 0 else None


_FINDERS: dict[str, Callable[[_Rules, Node], Rule | None]] = {
    "arange": _Rules.arange, "ones": _Rules.ones, "new_ones": _Rules.ones, "ones_like": _Rules.ones,
    "zeros": _Rules.zeros, "new_zeros": _Rules.zeros, "zeros_like": _Rules.zeros,
    "full": _Rules.full, "full_like": _Rules.full, "new_full": _Rules.full,
    **dict.fromkeys(("to", "bool", "float", "long", "int", "contiguous", "clone"), _Rules.cast),
    "add": _Rules.shift, "sub": _Rules.shift,
    "and": _Rules.both, "logical_and": _Rules.both, "bitwise_and": _Rules.both,
    "logical_not": _Rules.negate, "tril": _Rules.triangle, "triu": _Rules.triangle,
    "expand": _Rules.expand, "repeat": _Rules.repeat, "unsqueeze": _Rules.unsqueeze, "getitem": _Rules.getitem,
    "view": _Rules.of_same, "reshape": _Rules.of_same, "flatten": _Rules.of_same, "interpolate": _Rules.interpolate,
    "diff": _Rules.diff, "cumsum": _Rules.cumsum, **dict.fromkeys(_COMPARISONS, _Rules.compare),
}  # fmt: skip


def _is_whole(node: Node) -> bool:
    value = tensor_of(node)
    return value is not None and value.dtype in (torch.int64, torch.int32)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _as_dtype(rule: Same, node: Node) -> Rule | None:
    value = tensor_of(node)
    if value is None or value.is_complex():
        return None
    kind = bool if value.dtype == torch.bool else float if value.is_floating_point() else int
    return Same(kind(rule.number))


def _of_coordinate_and_number(name: str, least: int, number: float) -> Rule | None:
    """A coordinate is at least what is added to it; how far it goes is not known."""
    if name in ("ge", "lt") and least >= number:
        return Same(name == "ge")
    if name in ("gt", "ne", "le", "eq") and least > number:
        return Same(name in ("gt", "ne"))
    return None


def _of_coordinates(name: str, first: Coordinate, second: Coordinate) -> Rule | None:
    apart = second.offset - first.offset
    if first.dim == second.dim:
        return Same(bool(_COMPARISONS[name](0, apart)))
    if name in ("ge", "gt"):
        return _of_coordinates({"ge": "le", "gt": "lt"}[name], second, first)
    if name not in ("le", "lt"):
        return None
    return UpTo(first.dim, second.dim, apart if name == "le" else apart - 1)


def _moved(rule: Rule | None, kept: list[int], rank: int) -> Rule | None:
    """A rule whose dimensions went to `kept`, of a tensor of `rank`."""
    if isinstance(rule, Coordinate):
        return replace(rule, dim=kept[rule.dim] - rank)
    if isinstance(rule, UpTo):
        return replace(rule, left=kept[rule.left] - rank, right=kept[rule.right] - rank)
    return rule


def _sliced(rule: Coordinate | UpTo, index: tuple[Any, ...], rank: int, result_rank: int) -> Rule | None:
    """The rule after dimensions are added, and the first of a coordinate is taken."""
    if any(item is not None and not isinstance(item, slice) for item in index):
        return None
    index += (slice(None),) * (rank - sum(item is not None for item in index))
    kept = [axis for axis, item in enumerate(index) if item is not None]
    taken = [item for item in index if item is not None]
    if len(index) != result_rank:
        return None
    dims = (rule.dim,) if isinstance(rule, Coordinate) else (rule.left, rule.right)
    if all(taken[dim] == slice(None) for dim in dims):
        return _moved(rule, kept, result_rank)
    return Same(rule.offset) if isinstance(rule, Coordinate) and taken[rule.dim] == slice(None, 1) else None

"""Attention written by hand, found in Dynamo's graph.

    scores = q @ k.transpose(-2, -1) / sqrt(d)
    scores = scores.masked_fill(~mask, -inf)       ->   scaled_dot_product_attention(q, k, v, mask, scale=1/sqrt(d))
    torch.softmax(scores, -1) @ v

The walk goes from a softmax up to the product that makes its scores and down to the product that reads its weights.
Each call on the way must be one that the fused operator has an argument for; `NotLegalError` names the first that is
not. Whether a softmax lies between two products at all is asked first, so that a classifier's is no near miss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from compiler.passes.rewrite.calls import (
    argument,
    is_in_place,
    is_number,
    is_same_shape,
    operands,
    operation,
    shape_of,
    tensor_of,
)
from compiler.passes.rewrite.constants import constant_of
from compiler.passes.rewrite.patterns import is_low_enough
from compiler.passes.rewrite.products import Operand, is_product, scores_operands, values_operand
from compiler.passes.rewrite.reasons import NotLegalError

#: How many calls may lie between a softmax and a product for the two to have to do with each other.
_FARTHEST = 16

CASTS = frozenset("to float half double bfloat16 type type_as".split())
_IDENTITIES = frozenset(("contiguous", "clone"))


@dataclass(frozen=True)
class BooleanMask:
    """Scores that are filled with a number where `node` is true, or where it is false if `keeps`."""

    node: Node
    keeps: bool
    fill: float


@dataclass
class Attention:
    """One match: what goes into the fused operator, and the calls that it stands for.

    `scale` is None where it is 1/sqrt(depth) for a depth that differs from call to call. A bias is a tensor and the
    number that it is multiplied by. Masks and biases are in the order from the softmax up.
    """

    product: Node
    result: Node
    query: Operand
    key: Operand
    value: Operand
    result_order: tuple[int, ...] | None
    calls: list[Node]
    scale: float | None = 1.0
    masks: list[BooleanMask] = field(default_factory=list)
    biases: list[tuple[Node, float]] = field(default_factory=list)
    dropout: float = 0.0


def looks_like_attention(softmax: Node) -> bool:
    """Whether a softmax lies between two products, whatever else lies there."""
    return _product_above(softmax) is not None and _product_below(softmax) is not None


def match_attention(softmax: Node) -> Attention:
    """Read attention around a softmax between two products. Raises NotLegalError where the fused operator differs."""
    walk = _Walk(softmax)
    walk.down()
    walk.up()
    return walk.matched()


def _product_above(node: Node) -> Node | None:
    """The nearest product whose result reaches a node through calls that keep its shape, up to views of it."""
    waiting, seen = [node], set[Node]()
    while waiting and len(seen) < _FARTHEST:
        current = waiting.pop(0)
        if current in seen or tensor_of(current) is None:
            continue
        if is_product(current):
            return current
        seen.add(current)
        elements = tensor_of(current).numel()  # type: ignore[union-attr]
        waiting += [read for read in current.all_input_nodes if _has_elements(read, elements)]
    return None


def _product_below(node: Node) -> Node | None:
    """The nearest product that has a node's result as an operand, through calls that keep its number of elements."""
    waiting, seen = [node], set[Node]()
    while waiting and len(seen) < _FARTHEST:
        current = waiting.pop(0)
        if current in seen or tensor_of(current) is None:
            continue
        seen.add(current)
        for user in current.users:
            if is_product(user):
                return user
            if _has_elements(user, tensor_of(current).numel()):  # type: ignore[union-attr]
                waiting.append(user)
    return None


def _has_elements(node: Node, elements: Any) -> bool:
    value = tensor_of(node)
    return value is not None and str(value.numel()) == str(elements)


class _Walk:
    def __init__(self, softmax: Node) -> None:
        self.softmax = softmax
        self.calls = [softmax]
        self.scale: float | None = 1.0
        self.masks: list[BooleanMask] = []
        self.biases: list[tuple[Node, float]] = []
        self.dropout = 0.0
        self._check_dimension()

    def matched(self) -> Attention:
        assert self.product is not None
        query, key, calls, factor = scores_operands(self.product)
        self.calls += calls
        if self.scale is not None:
            self._multiply_scale(factor)
        elif factor != 1.0:
            raise NotLegalError("scale.not_a_number", self.product.name)
        value, order = values_operand(self.result, self.weights)
        for node in self.calls:
            if node is not self.result and len(node.users) > 1:
                raise NotLegalError("scores.read_elsewhere", node.name)
        return Attention(
            self.product, self.result, query, key, value, order, self.calls,
            self.scale, self.masks, self.biases, self.dropout,
        )  # fmt: skip

    def _check_dimension(self) -> None:
        dim = argument(self.softmax, 1, "dim")
        if dim not in (-1, len(shape_of(self.softmax)) - 1):
            raise NotLegalError("softmax.not_last_dimension", f"{self.softmax.name} runs over dimension {dim}")

    # --- from the weights to the result

    def down(self) -> None:
        current = self.softmax
        while True:
            if len(current.users) != 1:
                readers = ", ".join(user.name for user in current.users)
                raise NotLegalError("weights.read_elsewhere", f"{current.name} is read by {readers}")
            (user,) = current.users
            self.calls.append(user)
            if is_product(user):
                self.weights, self.result = current, user
                return
            self._pass_weights(user)
            current = user

    def _pass_weights(self, node: Node) -> None:
        name = operation(node)
        if name == "dropout":
            rate, trains = argument(node, 1, "p", 0.5), node.args[2] if len(node.args) > 2 else None
            trains = node.kwargs.get("training", node.kwargs.get("train", True)) if trains is None else trains
            if trains and rate:
                if self.dropout:
                    raise NotLegalError("weights.other_operation", f"{node.name} is a second dropout")
                self.dropout = float(rate)
        elif not _is_cast(node) and name not in _IDENTITIES:
            raise NotLegalError("weights.other_operation", f"{node.name} is {name or node.target}")

    # --- from the softmax to the product

    def up(self) -> None:
        current: Any = argument(self.softmax, 0, "input")
        factor = 1.0
        while not is_product(current):
            if _product_above(current) is None:
                raise NotLegalError("scores.other_operation", f"{current} is not made by a product")
            self.calls.append(current)
            name = operation(current) or ""
            step = _STEPS.get(name)
            if _is_cast(current) or name in _IDENTITIES or self._is_same_view(current):
                current = argument(current, 0, "input")
            elif step is not None:
                current, factor = step(self, current, factor)
            else:
                raise NotLegalError("scores.other_operation", f"{current.name} is {name or current.target}")
        self.calls.append(current)
        self.product = current
        if operation(current) == "baddbmm":
            self._take_baddbmm(current, factor)
        self._multiply_scale(factor)

    def _is_same_view(self, node: Node) -> bool:
        source = node.args[0] if node.args else None
        is_view = operation(node) in ("view", "reshape")
        return is_view and isinstance(source, Node) and is_same_shape(shape_of(node), shape_of(source))

    def _multiply_scale(self, factor: float) -> None:
        if self.scale is None and factor == 1.0:
            return
        if self.scale is None or not math.isfinite(factor * self.scale) or factor * self.scale <= 0:
            raise NotLegalError("scale.not_positive", f"the scale is {factor}")
        self.scale *= factor

    def pass_mul(self, node: Node, factor: float) -> tuple[Node, float]:
        a, b = operands(node)
        if is_number(a):
            a, b = b, a
        return a, factor * _checked_scale(b, node)

    def pass_div(self, node: Node, factor: float) -> tuple[Node, float]:
        a, b = operands(node)
        if "rounding_mode" in node.kwargs:
            raise NotLegalError("scores.other_operation", f"{node.name} rounds")
        if (
            not is_number(b)
            and self._is_root_of_depth(b, a)
            and factor == 1.0
            and self.scale == 1.0
            and not self.biases
        ):
            self.scale = None
            return a, factor
        divisor = _checked_scale(b, node)
        return a, factor / divisor

    def _is_root_of_depth(self, divisor: Any, scores: Any) -> bool:
        """`scores / math.sqrt(q.size(-1))` of symbolic sizes, which is what the fused operator does by itself."""
        if not isinstance(divisor, Node) or operation(divisor) != "sym_sqrt" or not is_product(scores):
            return False
        _, key, _, number = scores_operands(scores)
        root: Any = divisor.args[0]
        value = root.meta.get("example_value") if isinstance(root, Node) else root
        return number == 1.0 and str(value) == str(key.sizes()[-1])

    def pass_add(self, node: Node, factor: float) -> tuple[Node, float]:
        a, b = operands(node)
        if node.kwargs.get("alpha", 1) != 1:
            raise NotLegalError("scores.other_operation", f"{node.name} multiplies what it adds")
        scores, bias = (a, b) if isinstance(a, Node) and _product_above(a) is not None else (b, a)
        self._take_bias(node, bias, factor, scores is a)
        return scores, factor

    def pass_sub(self, node: Node, factor: float) -> tuple[Node, float]:
        a, b = operands(node)
        if node.kwargs.get("alpha", 1) != 1 or not isinstance(a, Node) or _product_above(a) is None:
            raise NotLegalError("scores.other_operation", f"{node.name} subtracts the scores")
        self._take_bias(node, b, -factor, True)
        return a, factor

    def _take_bias(self, node: Node, bias: Any, factor: float, scores_first: bool) -> None:
        if is_number(bias) and math.isfinite(bias):
            return  # softmax is the same when every score of a row is shifted by one number
        if not isinstance(bias, Node) or tensor_of(bias) is None or (not scores_first and is_in_place(node)):
            raise NotLegalError("scores.other_operation", f"{node.name} adds {bias}")
        self.biases.append((bias, factor))

    def _take_baddbmm(self, node: Node, factor: float) -> None:
        beta = argument(node, 3, "beta", 1)
        bias = argument(node, 0, "input")
        if is_in_place(node) or not is_number(beta) or not is_number(argument(node, 4, "alpha", 1)):
            raise NotLegalError("scores.other_operation", f"{node.name} is no plain baddbmm")
        if beta != 0:
            self.biases.append((bias, factor * float(beta)))

    def pass_masked_fill(self, node: Node, factor: float) -> tuple[Node, float]:
        scores, mask = argument(node, 0, "input"), argument(node, 1, "mask")
        self._take_mask(node, mask, False, argument(node, 2, "value"), factor)
        return scores, factor

    def pass_where(self, node: Node, factor: float) -> tuple[Node, float]:
        if node.op == "call_method":  # scores.where(keep, fill)
            scores, keep, other = argument(node, 0, "self"), argument(node, 1, "condition"), argument(node, 2, "other")
        else:
            keep, scores, other = (argument(node, n, name) for n, name in enumerate(("condition", "input", "other")))
        is_kept = isinstance(scores, Node) and _product_above(scores) is not None
        scores, fill = (scores, other) if is_kept else (other, scores)
        self._take_mask(node, keep, is_kept, fill, factor)
        return scores, factor

    def _take_mask(self, node: Node, mask: Any, keeps: bool, fill: Any, factor: float) -> None:
        value, scores = tensor_of(mask), tensor_of(node)
        number = _number(fill, node)
        if value is None or value.dtype != torch.bool or number is None or scores is None:
            raise NotLegalError("mask.not_boolean", f"{node.name} fills in {fill}")
        if not is_low_enough(number, scores.dtype) or factor <= 0:
            raise NotLegalError(
                "mask.weak_fill", f"{node.name} fills in {number:g} in {scores.dtype}".replace("torch.", "")
            )
        if number != -math.inf and self.biases:
            raise NotLegalError("mask.mixed_fills", f"{node.name} is before a bias is added")
        if any(known.fill != number for known in self.masks):
            raise NotLegalError("mask.mixed_fills", f"{node.name} fills in {number:g}")
        self.masks.append(BooleanMask(mask, keeps, number))


#: What may stand between the product and the softmax, and how it is taken into account: the node and the factor of
#: the scores below it, to the node above and the factor of the scores there.
_STEPS: dict[str, Callable[[_Walk, Node, float], tuple[Node, float]]] = {
    "mul": _Walk.pass_mul,
    "div": _Walk.pass_div,
    "add": _Walk.pass_add,
    "sub": _Walk.pass_sub,
    "masked_fill": _Walk.pass_masked_fill,
    "where": _Walk.pass_where,
}


def _checked_scale(value: Any, node: Node) -> float:
    number = value if is_number(value) else _number(value, node)
    if number is None:
        raise NotLegalError("scale.not_a_number", f"{node.name} scales by {value}")
    if not math.isfinite(number) or number <= 0:
        raise NotLegalError("scale.not_positive", f"{node.name} scales by {number}")
    return float(number)


def _number(value: Any, before: Node) -> float | None:
    """A number, or that of a tensor of one element that is the same in each call."""
    if is_number(value):
        return float(value)
    known = constant_of(value, before)
    return float(known.item()) if known is not None and known.numel() == 1 and known.dim() == 0 else None


def _is_cast(node: Node) -> bool:
    """A change of dtype that keeps the device, to a floating-point dtype."""
    source = node.args[0] if node.args else None
    before, after = tensor_of(source), tensor_of(node)
    if operation(node) not in CASTS or before is None or after is None:
        return False
    return before.device == after.device and before.is_floating_point() and after.is_floating_point()

"""The two products of attention: `matmul`, `bmm`, `baddbmm` and `einsum` read alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from compiler.passes.rewrite.calls import argument, is_in_place, is_number, operands, operation, shape_of, tensor_of
from compiler.passes.rewrite.reasons import NotLegalError


@dataclass(frozen=True)
class Operand:
    """A tensor with its dimensions in the order that the fused operator wants: (..., length, depth)."""

    node: Node
    order: tuple[int, ...]

    @property
    def is_as_it_is(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    def sizes(self) -> tuple[Any, ...]:
        shape = shape_of(self.node)
        return tuple(shape[dim] for dim in self.order)


def is_product(node: Any) -> bool:
    """Whether a node is a product of two tensors that attention could be made of."""
    name = operation(node)
    if name in ("matmul", "baddbmm"):
        return all(tensor_of(operand) is not None for operand in _factors(node))
    return name == "einsum" and _letters(node) is not None


def _factors(node: Node) -> tuple[Any, Any]:
    if operation(node) == "baddbmm":
        return argument(node, 1, "batch1"), argument(node, 2, "batch2")
    return operands(node)


def scores_operands(node: Node) -> tuple[Operand, Operand, list[Node], float]:
    """Queries, keys, the calls that only scaled or cast them, and the number that these and the product scale by."""
    if operation(node) == "einsum":
        query, key = _einsum_scores(node)
        factor = 1.0
    else:
        first, second = _factors(node)
        query, key = _plain(first), _swapped(second)
        factor = float(argument(node, 4, "alpha", 1)) if operation(node) == "baddbmm" else 1.0
    calls: list[Node] = []
    query, query_factor = _unscaled(query, calls)
    key, key_factor = _unscaled(key, calls)
    return query, key, calls, factor * query_factor * key_factor


def values_operand(node: Node, weights: Node) -> tuple[Operand, tuple[int, ...] | None]:
    """The values, and the order of the result's dimensions where it is not (..., length, depth)."""
    if operation(node) == "einsum":
        return _einsum_values(node, weights)
    first, second = _factors(node)
    if first is not weights or operation(node) == "baddbmm":
        raise NotLegalError("weights.other_operation", f"{node.name} has the weights on its right")
    return _plain(second), None


def _plain(node: Node) -> Operand:
    return Operand(node, tuple(range(len(shape_of(node)))))


def _swapped(node: Node) -> Operand:
    rank = len(shape_of(node))
    if rank < 2:
        raise NotLegalError("shape.rank", f"{node.name} has {rank} dimension")
    return Operand(node, (*range(rank - 2), rank - 1, rank - 2))


def _unscaled(operand: Operand, calls: list[Node]) -> tuple[Operand, float]:
    """The tensor before transposes, casts to a wider dtype and multiplications by a number that only the product
    reads. They are folded into the order, and into the scale."""
    factor = 1.0
    while len(operand.node.users) == 1:
        node, name = operand.node, operation(operand.node)
        source = node.args[0] if node.args else None
        before, after = tensor_of(source), tensor_of(node)
        if before is None or after is None or not isinstance(source, Node):
            break
        is_transposed = node.target is getattr and node.args[1:] == ("mT",)
        if is_transposed or name == "transpose":
            order = list(range(len(operand.order)))
            first, second = (
                dim % len(order)
                for dim in ((-2, -1) if is_transposed else (_dim(node, position) for position in (0, 1)))
            )
            order[first], order[second] = order[second], order[first]
            operand = Operand(source, tuple(order[dim] for dim in operand.order))
        elif name in ("to", "float", "double") and _only_widens(before, after):
            operand = Operand(source, operand.order)
        elif name in ("mul", "div") and len(node.args) == 2 and _is_plain_scale(node):
            number = float(node.args[1])  # type: ignore[arg-type]
            factor *= number if name == "mul" else 1 / number
            operand = Operand(source, operand.order)
        else:
            break
        calls.append(node)
    return operand, factor


def _dim(transpose: Node, position: int) -> int:
    """The first or the second dimension that a `transpose`, `swapaxes` or `swapdims` exchanges."""
    return int(argument(transpose, 1 + position, f"dim{position}", transpose.kwargs.get(f"axis{position}")))


def _only_widens(before: Any, after: Any) -> bool:
    is_wider = before.dtype.itemsize <= after.dtype.itemsize and before.is_floating_point()
    return bool(is_wider and after.is_floating_point() and before.device == after.device)


def _is_plain_scale(node: Node) -> bool:
    return not is_in_place(node) and not node.kwargs and is_number(node.args[1]) and float(node.args[1]) > 0  # type: ignore[arg-type]


# --- einsum


def _letters(node: Node) -> tuple[str, str, str] | None:
    """The letters of both operands and of the result, of an einsum of two operands in explicit form."""
    equation = node.args[0] if node.args else None
    if not isinstance(equation, str) or "->" not in equation or "." in equation or len(node.args) != 3:
        return None
    if any(tensor_of(operand) is None for operand in node.args[1:]):
        return None
    inputs, _, output = equation.replace(" ", "").partition("->")
    first, _, second = inputs.partition(",")
    is_plain = all(len(set(part)) == len(part) for part in (first, second, output))
    return (first, second, output) if is_plain else None


def _einsum_scores(node: Node) -> tuple[Operand, Operand]:
    """`bihd,bjhd->bhij`: i only in the queries, j only in the keys, d in both and summed."""
    letters = _letters(node)
    assert letters is not None
    first, second, output = letters
    query, key = node.args[1], node.args[2]
    if output[-1] in first:
        query, key, first, second = key, query, second, first
    length, keys = output[-2:-1], output[-1]
    batch = output[:-2]
    summed = [letter for letter in first if letter in second and letter not in output]
    is_product_of_rows = length in first and length not in second and keys in second and keys not in first
    of_query, of_key = (batch + own + "".join(summed) for own in (length, keys))
    is_plain = is_product_of_rows and len(summed) == 1 and _same(first, of_query) and _same(second, of_key)
    if not length or not is_plain:
        raise NotLegalError("scores.other_operation", f"{node.name} is einsum {node.args[0]}")
    return _ordered(query, first, of_query), _ordered(key, second, of_key)


def _einsum_values(node: Node, weights: Node) -> tuple[Operand, tuple[int, ...] | None]:
    """`bhij,bjhd->bihd`: the weights' last letter is summed."""
    letters = _letters(node)
    assert letters is not None
    first, second, output = letters
    weight, value = node.args[1], node.args[2]
    if weight is not weights:
        weight, value, first, second = value, weight, second, first
    if weight is not weights or value is weights or len(first) < 2:
        raise NotLegalError("weights.other_operation", f"{node.name} is einsum {node.args[0]}")
    batch, length, keys = first[:-2], first[-2], first[-1]
    depth = [letter for letter in second if letter not in first]
    if len(depth) != 1 or not _same(second, batch + keys + depth[0]) or not _same(output, batch + length + depth[0]):
        raise NotLegalError("weights.other_operation", f"{node.name} is einsum {node.args[0]}")
    natural = batch + length + depth[0]
    order = None if output == natural else tuple(natural.index(letter) for letter in output)
    return _ordered(value, second, batch + keys + depth[0]), order


def _same(letters: str, wanted: str) -> bool:
    return sorted(letters) == sorted(wanted)


def _ordered(node: Any, letters: str, wanted: str) -> Operand:
    return Operand(node, tuple(letters.index(letter) for letter in wanted))

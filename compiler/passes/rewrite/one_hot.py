"""Sums of rows that hold one number: the number.

    one = scatter(zeros(n, m), 1, index, v)                             1 x index a row
    total = sum(one * scale, 1, keepdim=True)      ->      total = v * scale + 0 * scale

The gradient of cross entropy has it: it takes from each row of a softmax what the gradients of that row come to, and
all but that of the right word are zero. Summed, it is a pass over the whole matrix before the one that uses it.
The zero keeps what is not finite as it was: 0 * inf is NaN in every other column of the row.

    total = sum(scatter_add(zeros(n, m), 1, index, v), 1)      ->      total = sum(v, 1)

The gradient of a gather has it, where a softmax comes before: as many numbers a row as were gathered from it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.passes.rewrite.calls import is_same_shape, is_same_size
from compiler.passes.rewrite.joint import note_rewrite, replace_each
from compiler.passes.writing import call_beside

aten = torch.ops.aten

_ZEROS = (aten.full.default, aten.full_like.default)


def sum_one_hots(joint: GraphModule) -> GraphModule:
    """The graph, with such sums replaced in place."""
    return replace_each(joint, aten.sum.dim_IntList, _replace)


def _replace(total: Node) -> bool:
    """Whether `total` was such a sum, and is none any more."""
    if len(total.args) < 2 or not isinstance(total.args[1], list | tuple) or len(total.args[1]) != 1 or total.kwargs:
        return False
    product, dims, *rest = total.args
    casts: list[torch.dtype] = []
    while isinstance(product, Node) and _is_cast(product):
        casts.insert(0, product.meta["val"].dtype)
        product = product.args[0]
    if not isinstance(product, Node) or not product.meta["val"].dim():
        return False
    rank = product.meta["val"].dim()
    dim: int = dims[0] % rank  # type: ignore[index, operator]
    if product.target is aten.scatter_add.default:
        return _sum_what_was_added(total, product, dim, casts)
    if product.target is not aten.mul.Tensor:
        return False
    first, second = product.args
    for one, scale in ((first, second), (second, first)):
        value = _number_in_rows(one, dim)
        if value is not None and isinstance(scale, Node) and _is_of_rows(scale, one, dim):
            _write(total, scale, value, casts, None if rest and rest[0] else dim)
            return True
    return False


def _is_cast(node: Node) -> bool:
    """Whether a node rounds numbers, or widens them, and no more: autocast writes both, one after the other."""
    source = node.args[0] if node.target is aten._to_copy.default else None
    if not isinstance(source, Node) or not isinstance(source.meta["val"], torch.Tensor):
        return False
    before, after = source.meta["val"], node.meta["val"]
    return before.dtype.is_floating_point and after.dtype.is_floating_point and before.device == after.device


def is_zeros(node: Any) -> bool:
    """Whether a node makes a tensor of zeros."""
    return isinstance(node, Node) and node.target in _ZEROS and bool(node.args[1] == 0)


def _number_in_rows(node: Any, dim: int) -> float | None:
    """The number that each row of `node` along `dim` has once, beside zeros; None where that is not so."""
    if not isinstance(node, Node) or node.target is not aten.scatter.value or len(node.args) != 4:
        return None
    zeros, along, index, value = node.args
    if not is_zeros(zeros) or not isinstance(index, Node):
        return None
    shape, index_shape = list(node.meta["val"].shape), list(index.meta["val"].shape)
    is_one_a_row = is_same_shape(index_shape, [*shape[:dim], 1, *shape[dim + 1 :]])
    is_float = node.meta["val"].dtype.is_floating_point and isinstance(value, int | float)
    return float(value) if is_one_a_row and is_float and along % len(shape) == dim else None  # type: ignore[arg-type, operator]


def _sum_what_was_added(total: Node, added: Node, dim: int, casts: list[torch.dtype]) -> bool:
    """Whether `total` was a sum along `dim` of numbers that were added to zeros along it, and is one of them now."""
    zeros, along, index, source = added.args
    assert isinstance(along, int) and isinstance(zeros, Node) and isinstance(index, Node) and isinstance(source, Node)
    shape, index_shape = list(added.meta["val"].shape), list(index.meta["val"].shape)
    is_of_whole_rows = is_same_shape(index_shape, [*shape[:dim], index_shape[dim], *shape[dim + 1 :]])
    if not is_zeros(zeros) or along % len(shape) != dim or not is_of_whole_rows:
        return False
    if not is_same_shape(source.meta["val"].shape, index_shape) or not added.meta["val"].dtype.is_floating_point:
        return False
    with total.graph.inserting_before(total):
        result = call_beside(total, aten.sum.dim_IntList, source, [dim], *total.args[2:])
        for dtype in casts:
            result = call_beside(total, aten._to_copy.default, result, dtype=dtype)
    _replace_by(total, result)
    return True


def _is_of_rows(scale: Node, one: Any, dim: int) -> bool:
    """Whether `scale` has one number for each row, in the dtype of the product."""
    value, shape = scale.meta["val"], list(one.meta["val"].shape)
    is_one_a_row = is_same_shape(value.shape, [*shape[:dim], 1, *shape[dim + 1 :]])
    return is_one_a_row and value.dtype == one.meta["val"].dtype and not is_same_size(shape[dim], 1)


def _write(total: Node, scale: Node, value: float, casts: list[torch.dtype], dropped: int | None) -> None:
    """`dropped` is the dimension that the sum does not keep. A sum of one number is rounded as that number is."""
    graph = total.graph
    with graph.inserting_before(total):
        number = call_beside(total, aten.mul.Tensor, scale, value)
        nothing = call_beside(total, aten.mul.Tensor, scale, 0.0)
        result = call_beside(total, aten.add.Tensor, number, nothing)
        for dtype in casts:
            result = call_beside(total, aten._to_copy.default, result, dtype=dtype)
        if dropped is not None:
            result = call_beside(total, aten.squeeze.dim, result, dropped)
    _replace_by(total, result)


def _replace_by(total: Node, result: Node) -> None:
    note_rewrite(result, "one-hot sum", "one_hot.sum")
    total.replace_all_uses_with(result)
    total.graph.erase_node(total)

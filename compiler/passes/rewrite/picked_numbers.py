"""Gradients of numbers that were picked from rows by the rows' own numbers.

    index_put(zeros(n, m), [arange(n), column], v, accumulate)      ->      scatter_add(zeros(n, m), 1, column', v)

`log_p[torch.arange(n), word]` has it. That no row is written twice cannot be seen from index tensors, but from where
they come from: an `arange` for each dimension before that of the columns. column' counts a negative column from the end
of its row. Where vectors are picked, `states[torch.arange(n), last]`, the write stays one at indices, few among many,
but is no addition any more: on an H200 the gradients of one state of each of 64 x 512 x 768 took 31 us where every
element asked, 23 by TorchInductor, which adds.
It is done while forward and backward are one graph: afterwards the `arange` may be one more tensor that was saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.passes.rewrite.calls import is_same_shape
from compiler.passes.rewrite.joint import note_rewrite, replace_each
from compiler.passes.rewrite.one_hot import is_zeros
from compiler.passes.writing import call_beside

aten = torch.ops.aten

_RESHAPES = (aten.unsqueeze.default, aten.view.default, aten.reshape.default, aten._unsafe_view.default)


def add_along_rows(joint: GraphModule) -> GraphModule:
    """The graph, with such writes replaced in place."""
    return replace_each(joint, aten.index_put.default, _replace)


def _replace(put: Node) -> bool:
    """Whether `put` was such a write, and is none any more."""
    zeros, indices, values, *accumulate = put.args
    shape = put.meta["val"].shape
    if accumulate != [True] or not is_zeros(zeros) or not isinstance(indices, list | tuple) or len(indices) < 2:
        return False
    if not all(isinstance(index, Node) for index in indices):
        return False
    *numbers, column = indices
    rows, width, rest = shape[: len(numbers)], shape[len(numbers)], shape[len(indices) :]
    if not all(isinstance(size, int) for size in (width, *rest)):
        return False
    if not all(_is_number_of_row(number, dim, rows) for dim, number in enumerate(numbers)):
        return False
    if not isinstance(column, Node) or not isinstance(values, Node):
        return False
    if column.meta["val"].dtype not in (torch.int64, torch.int32) or not is_same_shape(column.meta["val"].shape, rows):
        return False
    if not is_same_shape(values.meta["val"].shape, [*rows, *rest]):
        return False
    if rest:
        put.args = (zeros, indices, values, False)
        note_rewrite(put, "picked numbers", "picked.rows")
        return True
    with put.graph.inserting_before(put):
        from_end = call_beside(put, aten.add.Tensor, column, width)
        is_negative = call_beside(put, aten.lt.Scalar, column, 0)
        at = call_beside(put, aten.where.self, is_negative, from_end, column)
        if at.meta["val"].dtype != torch.int64:
            at = call_beside(put, aten._to_copy.default, at, dtype=torch.int64)
        at = call_beside(put, aten.unsqueeze.default, at, -1)
        added_values = call_beside(put, aten.unsqueeze.default, values, len(rows))
        added = call_beside(put, aten.scatter_add.default, zeros, len(rows), at, added_values)
    note_rewrite(added, "picked numbers", "picked.rows")
    put.replace_all_uses_with(added)
    put.graph.erase_node(put)
    return True


def _is_number_of_row(index: Any, dim: int, rows: torch.Size) -> bool:
    """Whether an index tensor, broadcast to `rows`, holds at each position the position's own number along `dim`."""
    value = index.meta["val"]
    sizes = [*[1] * (len(rows) - value.dim()), *value.shape]
    if not is_same_shape(sizes, [size if n == dim else 1 for n, size in enumerate(rows)]):
        return False
    while index.target in _RESHAPES and isinstance(index.args[0], Node):
        index = index.args[0]
    return _counts_from_zero(index)


def _counts_from_zero(node: Node) -> bool:
    if node.target is aten.arange.default:
        return not node.meta["val"].dtype.is_floating_point
    if node.target in (aten.arange.start, aten.arange.start_step):
        return bool(node.args[0] == 0 and (len(node.args) < 3 or node.args[2] == 1))
    return False

"""Add a float32 product's bias by a loop, where the library's call with a bias is slower.

    y = aten.addmm(bias, x, w)        ->      product = aten.mm(x, w);  y = product + bias

cuBLASLt adds a bias, but for float32 it chooses among other kernels than cuBLAS does without one: none that shares the
sums of a tile among programs, which is what few tiles want. On an H200, in microseconds with a bias and without:

    128 x 768 x 768     37.8, 18.2        256 x 1024 x 1024     38.4, 27.5        512 x 512 x 512      22.3, 19.4
    128 x 768 x 3072    68.1, 30.8        64 x 4096 x 4096      92.5, 71.6        4096 x 768 x 768    136.5, 136.2

A loop that reads the result adds the bias for nothing; where none does, one more kernel is launched for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.lowering.aliases import is_view
from compiler.lowering.builder import tf32_is_allowed
from compiler.options import Options
from compiler.passes.folding.bias import KNOB
from compiler.passes.folding.writing import call_of, with_calls_rewritten

aten = torch.ops.aten

#: Rows and columns of the library's tiles of float32, and from how many of them on a call with a bias is as fast.
TILE, MANY = 128, 48
#: The least inner size of a product of few tiles that gains more than what a kernel takes that adds the bias alone.
LONG = 768


def with_product_biases_apart(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` in which such products have no bias, or `graph` itself where there is none to take out."""
    if device.kind == "cpu" or KNOB in options.disabled_rules or tf32_is_allowed():
        return graph, ()
    return with_calls_rewritten(graph, aten.addmm.default, _takes_apart, _take_apart), ()


def _takes_apart(product: Node) -> bool:
    bias, left, right = (_tensor(operand) for operand in product.args[:3])
    if bias is None or left is None or right is None or product.kwargs or bias.dim() != 1:
        return False
    rows, inner, columns = *left.shape, right.shape[1]
    if left.dtype != torch.float32 or not all(isinstance(size, int) for size in (rows, inner, columns)):
        return False
    if 1 in (rows, inner, columns) or bias.shape != (columns,) or bias.dtype != left.dtype:
        return False
    readers = list(_readers(product))
    if -(-rows // TILE) * -(-columns // TILE) < MANY and inner >= LONG:
        return True
    is_read_by_loops = bool(readers) and all(_is_loop(reader) for reader in readers)
    # The library's own ReLU at the end of a large product costs nothing.
    return is_read_by_loops and not (rows * columns >= MANY * TILE**2 and aten.relu.default in _targets(readers))


def _readers(node: Node) -> Iterator[Node]:
    """What reads a node's elements, by way of views too."""
    for user in node.users:
        if is_view(user.target):
            yield from _readers(user)
        else:
            yield user


def _is_loop(node: Node) -> bool:
    return node.op == "call_function" and torch.Tag.pointwise in getattr(node.target, "tags", ())


def _targets(nodes: Iterable[Node]) -> set[Any]:
    return {node.target for node in nodes}


def _tensor(operand: Any) -> torch.Tensor | None:
    value = operand.meta["val"] if isinstance(operand, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _take_apart(addmm: Node) -> None:
    bias, left, right = addmm.args
    graph, value = addmm.graph, addmm.meta["val"]
    with graph.inserting_before(addmm):
        product = call_of(addmm, graph, value, aten.mm.default, left, right, label="product")
        total = call_of(addmm, graph, value, aten.add.Tensor, product, bias, label="bias")
    addmm.replace_all_uses_with(total)
    graph.erase_node(addmm)

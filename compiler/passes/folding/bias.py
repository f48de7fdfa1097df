"""Add biases by loops instead of the library's calls.

    y = aten.convolution(x, w, bias)        ->      y = aten.convolution(x, w);      z = y + bias[:, None, None]
    y = aten.addmm(bias, x, w)              ->      product = aten.mm(x, w);         y = product + bias

cuDNN's convolutions leave a bias to ATen, which adds it in a pass of its own over the result. As a loop it is computed
where the result is read. Both round twice: the convolution, then the sum. What takes a bias for nothing keeps it: the
calls of folding, and products of pixels (cuBLAS).

cuBLASLt adds a product's bias, but for float32 it chooses among other kernels than cuBLAS does without one: none that
shares the sums of a tile among programs, which is what few tiles want. On an H200, in microseconds with a bias and
without:

    128 x 768 x 768     37.8, 18.2        256 x 1024 x 1024     38.4, 27.5        512 x 512 x 512      22.3, 19.4
    128 x 768 x 3072    68.1, 30.8        64 x 4096 x 4096      92.5, 71.6        4096 x 768 x 768    136.5, 136.2

A loop that reads the result adds the bias for nothing; where none does, one more kernel is launched for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.lowering.aliases import is_view
from compiler.lowering.builder import tf32_is_allowed
from compiler.lowering.convolutions import is_pixel_product
from compiler.lowering.eager import EagerTensor, describe
from compiler.options import Options
from compiler.passes.writing import call_of, with_calls_rewritten

aten = torch.ops.aten

#: The name of this pass in the knob `disable`.
KNOB = "bias"
#: Rows and columns of the library's tiles of float32, and from how many of them on a call with a bias is as fast.
TILE, MANY = 128, 48
#: The least inner size of a product of few tiles that gains more than what a kernel takes that adds the bias alone.
LONG = 768


def with_bias_apart(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` whose convolutions and float32 products have no bias where a loop is expected to be faster, or
    `graph` itself where there is none to take out. On a CPU oneDNN adds it as it stores the result."""
    if device.kind == "cpu" or KNOB in options.disabled_rules:
        return graph, ()
    graph = with_calls_rewritten(graph, aten.convolution.default, _of_convolution, _take_from_convolution)
    if not tf32_is_allowed():
        graph = with_calls_rewritten(graph, aten.addmm.default, _of_product, _take_from_product)
    return graph, ()


def _of_convolution(convolution: Node) -> bool:
    _, weight, bias, stride, padding, _, is_transposed, _, groups = convolution.args
    if not isinstance(bias, Node) or not isinstance(weight, Node):
        return False
    result, of_bias = convolution.meta["val"], bias.meta["val"]
    if result.dtype != of_bias.dtype or not result.dtype.is_floating_point or result.device != of_bias.device:
        return False
    filters = describe(weight.meta["val"]).shape
    return len(filters) != 4 or not is_pixel_product(filters, result.dtype, stride, padding, is_transposed, groups)  # type: ignore[arg-type]


def _take_from_convolution(convolution: Node) -> None:
    bias: Any = convolution.args[2]
    graph, result, of_bias = convolution.graph, convolution.meta["val"], describe(bias.meta["val"])
    convolution.update_arg(2, None)
    last, operand = convolution, bias
    space: tuple[int, ...] = ()
    for _ in result.shape[2:]:
        space = (*space, 1)
        value = EagerTensor((*of_bias.shape, *space), (*of_bias.strides, *space), 0, of_bias.dtype, of_bias.device)
        with graph.inserting_after(last):
            last = operand = call_of(convolution, value, aten.unsqueeze.default, operand, -1)
    with graph.inserting_after(last):
        total = call_of(convolution, result, aten.add.Tensor, convolution, operand, label="bias")
    convolution.replace_all_uses_with(total, delete_user_cb=lambda user: user is not total)


def _of_product(product: Node) -> bool:
    bias, left, right = (_tensor(operand) for operand in product.args[:3])
    if bias is None or left is None or right is None or product.kwargs or bias.dim() != 1:
        return False
    rows, inner, columns = *left.shape, right.shape[1]
    if left.dtype != torch.float32 or not all(isinstance(size, int) for size in (rows, inner, columns)):
        return False
    if 1 in (rows, inner, columns) or bias.shape != (columns,) or bias.dtype != left.dtype:
        return False
    if -(-rows // TILE) * -(-columns // TILE) < MANY and inner >= LONG:
        return True
    readers = list(_readers(product))
    is_read_by_loops = bool(readers) and all(_is_loop(reader) for reader in readers)
    # The library's own ReLU at the end of a large product costs nothing.
    has_relu = any(reader.target is aten.relu.default for reader in readers)
    return is_read_by_loops and not (rows * columns >= MANY * TILE**2 and has_relu)


def _readers(node: Node) -> Iterator[Node]:
    """What reads a node's elements, by way of views too."""
    for user in node.users:
        if is_view(user.target):
            yield from _readers(user)
        else:
            yield user


def _is_loop(node: Node) -> bool:
    return node.op == "call_function" and torch.Tag.pointwise in getattr(node.target, "tags", ())


def _tensor(operand: Any) -> torch.Tensor | None:
    value = operand.meta["val"] if isinstance(operand, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _take_from_product(addmm: Node) -> None:
    bias, left, right = addmm.args
    graph, value = addmm.graph, addmm.meta["val"]
    with graph.inserting_before(addmm):
        product = call_of(addmm, value, aten.mm.default, left, right, label="product")
        total = call_of(addmm, value, aten.add.Tensor, product, bias, label="bias")
    addmm.replace_all_uses_with(total)
    graph.erase_node(addmm)

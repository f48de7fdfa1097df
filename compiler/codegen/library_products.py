"""Matrix products that the host can launch in the library without asking torch each time.

    mm = torch.mm(x, weight)        ->    mm = empty((512, 4096), (4096, 1), torch.bfloat16)
                                          library_mm(x, weight, mm)

What torch finds out at every call (shapes, strides, which operand lies transposed) is known when the wrapper is made.
What may change between calls (its settings, the stream, the addresses) is left to
`compiler.runtime.host.library_products`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from compiler.codegen.naming import identifier
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, TensorArgument
from compiler.ir.size import known
from compiler.schedule.products.library_epilogues import ADDMM_GELU

aten = torch.ops.aten

#: What is applied to each sum by the library itself, besides the bias, by the operator that says so.
ACTIVATIONS: Mapping[Any, str] = {
    aten.mm.default: "none",
    aten.bmm.default: "none",
    aten.addmm.default: "none",
    aten._addmm_activation.default: "relu",
    ADDMM_GELU: "gelu",
}
_DTYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})
#: The library counts rows and columns in 32 bits.
MOST = 2**31 - 1
#: Longer sums than so many times the rows and the columns of the result, as those of a weight's gradient are, may be
#: shared among programs. How torch's cuBLAS shares them has not been compared with what cuBLASLt finds best.
LONGEST_SUMS = 4


@dataclass(frozen=True)
class Matrix:
    """A matrix in a buffer, or a batch of them: `step` elements from row to row, or from column to column where it lies
    transposed, and `batch_step` from matrix to matrix. `offset` is in bytes from the first element of the buffer's
    tensor."""

    layout: Layout
    step: int
    is_transposed: bool
    offset: int = 0
    batch_step: int = 0


@dataclass(frozen=True)
class LibraryProduct:
    """`activation(left @ right + bias)`, into a matrix of `result`'s layout whose rows lie one after the other.

    `target` is the operator; its tensors, in the order of its arguments, are `buffers`."""

    target: Any
    left: Matrix
    right: Matrix
    result: Matrix
    bias: Matrix | None
    activation: str
    buffers: tuple[str, ...]

    @property
    def rows(self) -> int:
        return known(self.left.layout.shape[-2])

    @property
    def inner(self) -> int:
        return known(self.left.layout.shape[-1])

    @property
    def columns(self) -> int:
        return known(self.right.layout.shape[-1])

    @property
    def batches(self) -> int | None:
        """None where it is no batch."""
        return known(self.left.layout.shape[0]) if len(self.left.layout.shape) == 3 else None


def name_of_product(node: ExternNode) -> str:
    """What the wrapper calls the function that launches it."""
    return f"library_{identifier(node.name)}"


def library_products(units: Iterable[Any], graph: LoopGraph) -> dict[str, LibraryProduct]:
    """Those of a schedule's units, by their functions' names."""
    calls = (unit for unit in units if isinstance(unit, ExternNode))
    found = ((call, library_product(call, graph)) for call in calls)
    return {name_of_product(call): product for call, product in found if product is not None}


def library_product(node: ExternNode, graph: LoopGraph) -> LibraryProduct | None:
    """The product that a call computes; None where it is another call, or one with anything unusual about it."""
    if node.target not in ACTIVATIONS or node.keywords or node.sizes or node.crosses_devices or node.stream is not None:
        return None
    # No factor is given, and of two activations it is the first.
    has_only_tensors = all(isinstance(argument, TensorArgument) for argument in node.arguments)
    if len(node.outputs) != 1 or node.outputs[0] is None or not has_only_tensors:
        return None
    *before, left, right = (_matrix(argument, graph) for argument in node.tensor_arguments)
    result = _as_it_lies(node.outputs[0][1])
    if left is None or right is None or result is None or result.is_transposed or None in before:
        return None
    bias = before[0] if before else None
    if bias is not None and bias.layout.shape != right.layout.shape[1:]:
        return None
    dtypes = {matrix.layout.dtype for matrix in (left, right, result, *before) if matrix is not None}
    if len(dtypes) > 1 or not dtypes <= _DTYPES:
        return None
    buffers = tuple(argument.buffer for argument in node.tensor_arguments)
    product = LibraryProduct(node.target, left, right, result, bias, ACTIVATIONS[node.target], buffers)
    return product if product.inner <= LONGEST_SUMS * max(product.rows, product.columns) else None


def _matrix(argument: TensorArgument, graph: LoopGraph) -> Matrix | None:
    """An argument where the library can read it: a matrix, or one row, that is contiguous along one dimension."""
    whole, layout = graph.buffers[argument.buffer], argument.layout
    if layout.dtype != whole.dtype or whole.offset != 0 or not isinstance(layout.offset, int):
        return None
    return _as_it_lies(layout, layout.offset * layout.dtype.itemsize)


def _as_it_lies(layout: Layout, offset: int = 0) -> Matrix | None:
    if not layout.shape or not all(isinstance(number, int) for number in (*layout.shape, *layout.stride)):
        return None
    sizes, steps = tuple(map(known, layout.shape)), tuple(map(known, layout.stride))
    if sizes[-1] < 2 or any(not 0 < size <= MOST for size in sizes):
        return None
    if len(sizes) == 1:
        return Matrix(layout, sizes[0], False, offset) if steps == (1,) else None
    if len(sizes) > 3:
        return None
    *batch, row_step, column_step = steps
    rows, columns = sizes[-2:]
    batch_step = batch[0] if batch else 0
    if column_step == 1 and columns <= row_step <= MOST:
        return Matrix(layout, row_step, False, offset, batch_step)
    if row_step == 1 and rows <= column_step <= MOST:
        return Matrix(layout, column_step, True, offset, batch_step)
    return None

"""Puts a product of padded matrices, and what is cut out of it, into the place of a product.

    logits = mm(x, w)                  f16[16384, 768] x f16[768, 50257]
    ->
    padded = mm(x, pad(w))             f16[16384, 768] x f16[768, 50264], pad(w) has seven columns of zeros more
    logits = padded[:, :50257]         a view

Zeros are added to the sums of what is kept, so these are what they were. What a caller gets is copied out again, for
it has eager's strides. A matrix is padded once for all products of a graph, as it lies in memory; one that pointwise
loops compute for products alone is padded by the loop that makes it.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from compiler.fx.notes import COMPUTED_FOR
from compiler.ir.library_calls import ALIGNED_ELEMENTS, BY_ROWS_APART
from compiler.lowering.aliases import is_view
from compiler.passes.padding.choice import Copied, Part
from compiler.passes.price import LINE, Sizes
from compiler.passes.writing import call_beside, evaluated

aten = torch.ops.aten

#: The products that are padded, by how many arguments stand before the two matrices.
PRODUCTS: dict[Any, int] = {aten.mm.default: 0, aten.addmm.default: 1}

#: The positions of what such a product takes, and of what it becomes.
PLACES: dict[Any, dict[Part, int]] = {
    aten.mm.default: {"left": 0, "right": 1},
    aten.addmm.default: {"bias": 0, "left": 1, "right": 2},
    BY_ROWS_APART: {"left": 0, "right": 1},
}

#: Calls that give what they take, as it is or in another dtype.
SAME = (aten._to_copy.default, aten.alias.default)
VIEWS = frozenset((
    aten.view.default, aten.permute.default, aten.unsqueeze.default, aten.squeeze.dims, aten.expand.default,
))  # fmt: skip


@dataclass(frozen=True)
class Product:
    """A call of `PRODUCTS` by its parts; `bias` is what it adds."""

    node: Node
    left: Node
    right: Node
    bias: Node | None

    @staticmethod
    def of(node: Node) -> Product | None:
        before = PRODUCTS.get(node.target)
        if before is None or not all(isinstance(part, Node) for part in node.args[: before + 2]):
            return None
        *bias, left, right = node.args[: before + 2]
        return Product(node, left, right, bias[0] if bias else None)  # type: ignore[arg-type]

    @property
    def sizes(self) -> tuple[Any, ...]:
        """Rows, inner size, columns."""
        return (*self.left.meta["val"].shape, self.right.meta["val"].shape[1])

    @property
    def is_returned(self) -> bool:
        """Whether a caller gets the result, or a view of it."""
        return any(map(_leads_out, self.node.users))


def may_be_apart(product: Product) -> bool:
    """Whether both matrices are contiguous along the sum, in whole vectors, so that rows and columns may be left out as
    one likes, and a bias has one number for each column."""
    left, right = (operand.meta["val"] for operand in (product.left, product.right))
    inner, columns = right.shape
    lies_so = left.stride() == (inner, 1) and right.stride() == (1, inner) and inner % ALIGNED_ELEMENTS == 0
    is_plain = product.bias is None or (not product.node.kwargs and product.bias.meta["val"].shape == (columns,))
    return lies_so and is_plain and columns % ALIGNED_ELEMENTS != 0 and columns > 2 * ALIGNED_ELEMENTS


class Writer:
    """Pads the products of one graph: of a joint graph, which is yet to be captured, or of a captured one, of which a
    report shows the products as they were."""

    def __init__(self, graph: Graph, is_captured: bool) -> None:
        self.graph, self.is_captured = graph, is_captured
        #: The product of a captured graph that is being padded.
        self.product: Product | None = None
        self.made: dict[tuple[Node, tuple[int, ...], tuple[int, int]], Node] = {}

    # --- what it would copy

    def copies(self, product: Product, sizes: Sizes) -> list[Copied]:
        """What has to be copied to compute the product at `sizes`."""
        more_rows, more_inner, more_columns = _more(product, sizes)
        found = [
            *self._copies_of(product.left, (more_rows, more_inner), "left"),
            *self._copies_of(product.right, (more_inner, more_columns), "right"),
        ]
        if product.bias is not None and any(_more_of_bias(product, sizes)):
            found.append(copy_of(product.bias, "bias"))
        if more_columns and product.is_returned:
            found.append(copy_of(product.node, "result"))
        return found

    def _copies_of(self, node: Node, more: tuple[int, int], what: Part) -> list[Copied]:
        if more == (0, 0):
            return []
        node, is_transposed = _as_it_lies(node)
        more = more[::-1] if is_transposed else more
        source = _source(node)
        if (source, tuple(node.meta["val"].shape), more) in self.made:
            return []
        is_made_by_loop = torch.Tag.pointwise in getattr(source.target, "tags", ()) or source.target in SAME
        if is_made_by_loop and _is_for_products(source):
            return []
        return [copy_of(source, what)]

    # --- what it writes

    def pad(self, product: Product, sizes: Sizes) -> Node:
        """The padded product, in whose place the other one's readers read it now."""
        self.product = product if self.is_captured else None
        node, (rows, _, columns) = product.node, product.sizes
        more_rows, more_inner, more_columns = _more(product, sizes)
        left = self.matrix(product.left, (more_rows, more_inner))
        right = self.matrix(product.right, (more_inner, more_columns))
        with self.graph.inserting_before(node):
            bias = [] if product.bias is None else [self._bias(product, sizes)]
            result = whole = self._call(node, node.target, *bias, left, right, **node.kwargs)
            if more_columns:
                result = self._call(node, aten.slice.Tensor, result, 1, 0, columns)
            if more_rows:
                result = self._call(node, aten.slice.Tensor, result, 0, 0, rows)
            returned = result
            if more_columns and product.is_returned:
                settings = {"memory_format": torch.contiguous_format}
                returned = self._call(node, aten.clone.default, result, **settings)
        for user in list(node.users):
            user.replace_input_with(node, returned if _leads_out(user) else result)
        self.graph.erase_node(node)
        _follow(result)
        return whole

    def take_apart(self, product: Product) -> Node:
        """The product by rows that lie apart, in the other one's place."""
        self.product = product if self.is_captured else None
        node, left, right = product.node, product.left, product.right
        with self.graph.inserting_before(node):
            if product.bias is not None:
                left = self._beside(left, self._constant(product.left, 1, 1.0))
                bias = self._call(node, aten.unsqueeze.default, product.bias, 1)
                lying = self._beside(self._call(node, aten.permute.default, right, [1, 0]), bias)
                right = self._call(node, aten.permute.default, lying, [1, 0])
            result = self._call(node, BY_ROWS_APART, left, right)
        node.replace_all_uses_with(result)
        self.graph.erase_node(node)
        return result

    def _beside(self, matrix: Node, column: Node) -> Node:
        """The matrix with a column beside it, and zeros up to a whole line of memory more."""
        zeros = self._constant(matrix, LINE - 1, 0.0)
        return self._call(matrix, aten.cat.default, [matrix, column, zeros], 1)

    def _constant(self, matrix: Node, columns: int, value: float) -> Node:
        """So many columns of one number, as long as those of the matrix."""
        like = matrix.meta["val"]
        settings = {"dtype": like.dtype, "device": like.device, "pin_memory": False}
        return self._call(matrix, aten.full.default, [like.shape[0], columns], value, **settings)

    def _bias(self, product: Product, sizes: Sizes) -> Node:
        assert product.bias is not None
        more = _more_of_bias(product, sizes)
        if not any(more):
            return product.bias
        pads = [size for extra in reversed(more) for size in (0, extra)]
        return self._call(product.bias, aten.constant_pad_nd.default, product.bias, pads, 0.0)

    def matrix(self, node: Node, more: tuple[int, int]) -> Node:
        """The matrix with so many rows and columns of zeros more; a transposed one is padded as it lies."""
        if more == (0, 0):
            return node
        lying, is_transposed = _as_it_lies(node)
        if is_transposed:
            transposed = self.matrix(lying, more[::-1])
            with self.graph.inserting_after(transposed):
                return self._call(node, aten.permute.default, transposed, [1, 0])
        node = lying
        key = (_source(node), tuple(node.meta["val"].shape), more)
        if key not in self.made:
            with self.graph.inserting_before(_node_after(node)):
                pads = [0, more[1], 0, more[0]]
                self.made[key] = self._call(node, aten.constant_pad_nd.default, node, pads, 0.0)
        return self.made[key]

    def _call(self, stands_for: Node, target: Any, *args: Any, **settings: Any) -> Node:
        """A new node with word of what it is for: AOTAutograd reads that of a joint graph's nodes to split it, and in a
        captured graph they are a product's."""
        like = self.product.node if self.product is not None else stands_for
        node = call_beside(like, target, *args, **settings)
        if self.product is not None:
            node.meta[COMPUTED_FOR] = (like.name,)
        return node


def _more(product: Product, sizes: Sizes) -> Sizes:
    rows, inner, columns = (wide - size for wide, size in zip(sizes, product.sizes, strict=True))
    return rows, inner, columns


def _more_of_bias(product: Product, sizes: Sizes) -> list[int]:
    """By how much each dimension of the bias grows: where it has one number for all rows or columns, by nothing."""
    assert product.bias is not None
    rows, _, columns = zip(product.sizes, sizes, strict=True)
    shape = product.bias.meta["val"].shape
    ends = (rows, columns)[2 - len(shape) :]
    return [wide - size if own != 1 else 0 for own, (size, wide) in zip(shape, ends, strict=True)]


def _as_it_lies(node: Node) -> tuple[Node, bool]:
    """The matrix before it was transposed any number of times, and whether rows and columns have changed places."""
    is_transposed = False
    while node.target is aten.permute.default and len(node.meta["val"].shape) == 2:
        dims: Any = node.args[1]
        first, second = (dim % 2 for dim in dims)
        if first < second:
            break
        node, is_transposed = node.args[0], not is_transposed  # type: ignore[assignment]
    return node, is_transposed


def _source(node: Node) -> Node:
    """The node whose elements a matrix holds in that order."""
    while node.target is aten.view.default:
        node = node.args[0]  # type: ignore[assignment]
    return node


def _is_for_products(node: Node) -> bool:
    """Whether nothing but products reads a node, as it is or by way of views."""
    return all(user.target in PRODUCTS or (user.target in VIEWS and _is_for_products(user)) for user in node.users)


def copy_of(node: Node, what: Part) -> Copied:
    value = node.meta["val"]
    return Copied(what, 2 * value.numel() * value.dtype.itemsize)


def copied_for(product: Node, what: Part) -> str | None:
    """The name of what a padded product's operand, or what it adds, is a copy of; None for the result, which is its."""
    if what not in PLACES[product.target]:
        return None
    source: Any = product.args[PLACES[product.target][what]]
    passed = (aten.permute.default, aten.view.default, aten.constant_pad_nd.default, aten.cat.default)
    while source.target in passed:
        source = source.args[0][0] if source.target is aten.cat.default else source.args[0]
    return str(source.name)


def _node_after(node: Node) -> Node:
    """The node in front of which something may stand that reads `node`."""
    node = node.next
    while node.op == "placeholder":
        node = node.next
    return node


def _leads_out(user: Node) -> bool:
    """Whether a caller gets what this node reads, or a view of it."""
    views = is_view(user.target) or user.target is operator.getitem
    return user.op == "output" or (views and any(map(_leads_out, user.users)))


def _follow(node: Node) -> None:
    """Let views of what lies otherwise now know it. A view that cannot be had without a copy stays as it was."""
    for user in node.users:
        if user.target in VIEWS:
            try:
                user.meta["val"] = evaluated(user)
            except RuntimeError:
                continue
            _follow(user)

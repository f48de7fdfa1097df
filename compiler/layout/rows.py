"""Products whose sizes tensor cores cannot take eight at a time, made a little larger in training graphs.

    logits = mm(x, w)                  f16[16384, 768] x f16[768, 50257]
    ->
    padded = mm(x, pad(w))             f16[16384, 768] x f16[768, 50264], pad(w) has seven columns of zeros more
    logits = padded[:, :50257]         a view

A row of 50257 elements of two bytes leaves the next one at an odd address, and a sum over so many leaves a rest: the
library's fast kernels take neither. On an H200 the product above takes 13.3 ms and the padded one 1.8, those of its
gradients 9.0 and 8.3 ms, and 1.6 each. Strides alone do not do it: with rows further apart and no longer they take
13.4, 9.6 and 2.5 ms. Padding what is computed is a wider loop; what a caller gets is copied out again.

This changes the joint graph of a training step before it is split, so that what is saved is padded once for both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from compiler.capture.torch_internals import fake_mode_of

aten = torch.ops.aten

#: Devices on which it matters.
KINDS = ("cuda",)
#: Elements of two bytes that tensor cores' fast kernels load at a time.
PIECE = 8
#: Products of fewer multiplications take as long as a launch.
LEAST_PRODUCTS = 1 << 32
#: The share by which padding may make a product larger.
MOST_GROWTH = 1 / 16

#: Calls that give what they take, as it is or in another dtype.
_SAME = (aten._to_copy.default, aten.alias.default, aten.detach.default)
_TURNS = (aten.permute.default, aten.t.default, aten.transpose.int)
_VIEWS = frozenset((
    aten.view.default, aten._unsafe_view.default, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default, aten.detach.default,
))  # fmt: skip


def pad_products(joint: GraphModule) -> GraphModule:
    """The graph, with its large products padded in place."""
    padding = _Padding(joint.graph)
    for node in joint.graph.find_nodes(op="call_function", target=aten.mm.default):
        if _should_be_padded(node):
            padding.pad(node)
    if padding.made:
        joint.graph.lint()
        joint.recompile()
    return joint


def padded(size: int) -> int:
    return -(-size // PIECE) * PIECE


def _should_be_padded(product: Node) -> bool:
    left, right = (_value(node) for node in product.args)
    if left is None or right is None or left.device.type not in KINDS or left.dtype != right.dtype:
        return False
    sizes = (*left.shape, right.shape[-1])
    if left.dtype not in (torch.float16, torch.bfloat16) or not all(isinstance(size, int) for size in sizes):
        return False
    rows, inner, columns = sizes
    grown = padded(rows) * padded(inner) * padded(columns)
    is_large = rows * inner * columns >= LEAST_PRODUCTS
    return is_large and 1 < grown / (rows * inner * columns) <= 1 + MOST_GROWTH


def _value(node: Any) -> torch.Tensor | None:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


class _Padding:
    """Padded matrices of one graph, each made once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made: dict[tuple[Node, tuple[int, ...], tuple[int, int]], Node] = {}

    def pad(self, product: Node) -> None:
        """Put a product of padded matrices, and what is cut out of it, into the place of this one."""
        left, right = product.args
        assert isinstance(left, Node) and isinstance(right, Node)
        (rows, inner), columns = left.meta["val"].shape, right.meta["val"].shape[1]
        more_rows, more_inner, more_columns = (padded(size) - size for size in (rows, inner, columns))
        operands = (self.matrix(left, (more_rows, more_inner)), self.matrix(right, (more_inner, more_columns)))
        with self.graph.inserting_before(product):
            result = whole = self._call(product, aten.mm.default, *operands)
            if more_columns:
                result = self._call(product, aten.slice.Tensor, result, 1, 0, columns)
            if more_rows:
                result = self._call(product, aten.slice.Tensor, result, 0, 0, rows)
            returned = result
            if more_columns and any(map(_leads_out, product.users)):
                settings = {"memory_format": torch.contiguous_format}
                returned = self._call(product, aten.clone.default, result, **settings)
        self.made[product, (), (0, 0)] = whole
        for user in list(product.users):
            user.replace_input_with(product, returned if _leads_out(user) else result)
        self.graph.erase_node(product)
        _follow(result)

    def matrix(self, node: Node, more: tuple[int, int]) -> Node:
        """The matrix with so many rows and columns of zeros more; a transposed one is padded as it lies."""
        if more == (0, 0):
            return node
        if node.target in _TURNS and len(node.args[0].meta["val"].shape) == 2:  # type: ignore[union-attr]
            turned = self.matrix(node.args[0], more[::-1])  # type: ignore[arg-type]
            with self.graph.inserting_after(turned):
                return self._call(node, aten.permute.default, turned, [1, 0])
        source = node
        while source.target in (aten.view.default, aten._unsafe_view.default):
            source = source.args[0]  # type: ignore[assignment]
        key = (source, tuple(node.meta["val"].shape), more)
        if key not in self.made:
            with self.graph.inserting_before(node.next):
                found = self._computed_wider(node, more[1]) if more[0] == 0 else None
                pads = [0, more[1], 0, more[0]]
                self.made[key] = found or self._call(node, aten.constant_pad_nd.default, node, pads, 0.0)
        return self.made[key]

    def _computed_wider(self, node: Node, more: int) -> Node | None:
        """The matrix with zeros beside it, computed at that width from the start; None where it cannot be, or where it
        is needed as it is too. A copy with a border would be written besides the matrix."""
        if any(user.target not in _VIEWS and user.target is not aten.mm.default for user in node.users):
            return None
        columns = node.meta["val"].shape[-1]
        wider = _Wider(self, columns, columns + more)
        if not wider.covers(node):
            return None
        value = wider.node(node)
        place = self._call(node, aten.arange.default, columns + more, device=node.meta["val"].device, pin_memory=False)
        is_inside = self._call(node, aten.lt.Scalar, place, columns)
        settings = {"dtype": node.meta["val"].dtype, "device": node.meta["val"].device}
        zero = self._call(node, aten.scalar_tensor.default, 0.0, **settings)
        return self._call(node, aten.where.self, is_inside, value, zero)

    def _call(self, stands_for: Node, target: Any, *args: Any, **settings: Any) -> Node:
        node = self.graph.call_function(target, args, settings)
        node.meta = dict(stands_for.meta)
        node.meta["val"] = _evaluated(node)
        return node


class _Wider:
    """The loops that make a matrix of `columns` columns, run over `width` of them."""

    def __init__(self, padding: _Padding, columns: int, width: int) -> None:
        self.padding, self.columns, self.width = padding, columns, width
        self.known: dict[Node, Node] = {}

    def covers(self, node: Any) -> bool:
        """Whether each element of `node` depends on its own place in the row, and on what is wide enough already."""
        value = _value(node)
        if value is None or not value.dim() or value.shape[-1] == 1 or self._is_cut_from_wider(node):
            return not isinstance(node, Node) or value is not None
        if value.shape[-1] != self.columns:
            return False
        if node.target is aten.scatter.value:
            zeros, dim, index, _ = node.args
            is_along_rows = dim % value.dim() == value.dim() - 1 and index.meta["val"].shape[-1] == 1
            return is_along_rows and zeros.target in (aten.full.default, aten.full_like.default)
        if node.target in (aten.view.default, aten._unsafe_view.default):
            return node.args[0].meta["val"].shape[-1] == self.columns and self.covers(node.args[0])
        is_pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ()) or node.target in _SAME
        return is_pointwise and not _is_random(node) and all(map(self.covers, node.all_input_nodes))

    def _is_cut_from_wider(self, node: Node) -> bool:
        if node.target is not aten.slice.Tensor or list(node.args[1:]) != [1, 0, self.columns]:
            return False
        return bool(node.args[0].meta["val"].shape[-1] == self.width)  # type: ignore[union-attr]

    def node(self, node: Node) -> Node:
        """The same at the greater width; what lies beyond the matrix is any value."""
        if node not in self.known:
            self.known[node] = self._made(node)
        return self.known[node]

    def _made(self, node: Node) -> Node:
        value = node.meta["val"]
        if not value.dim() or value.shape[-1] == 1:
            return node
        if self._is_cut_from_wider(node):
            return node.args[0]  # type: ignore[return-value]
        shape = [*value.shape[:-1], self.width]
        call = self.padding._call
        if node.target is aten.scatter.value:
            zeros, *rest = node.args
            settings = {"dtype": value.dtype, "device": value.device, "pin_memory": False}
            return call(node, node.target, call(zeros, aten.full.default, shape, zeros.args[1], **settings), *rest)  # type: ignore[union-attr, arg-type]
        if node.target in (aten.view.default, aten._unsafe_view.default):
            return call(node, node.target, self.node(node.args[0]), shape)  # type: ignore[arg-type]
        args: Any = torch.fx.node.map_arg(node.args, self.node)
        return call(node, node.target, *args, **node.kwargs)


def _is_random(node: Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _evaluated(node: Node) -> torch.Tensor:
    values: Any = torch.fx.node.map_arg(node.args, lambda argument: argument.meta["val"])
    with fake_mode_of([value for value in values if isinstance(value, torch.Tensor)] or [node.meta["val"]]):
        result: torch.Tensor = node.target(*values, **node.kwargs)  # type: ignore[operator]
    return result


def _leads_out(user: Node) -> bool:
    """Whether a caller gets what this node reads, or a view of it."""
    is_view = user.target in _VIEWS or user.target is aten.alias.default
    return user.op == "output" or (is_view and any(map(_leads_out, user.users)))


def _follow(node: Node) -> None:
    """Let views of what lies otherwise now know it. A view that cannot be had without a copy stays as it was."""
    for user in node.users:
        if user.target in _VIEWS:
            try:
                user.meta["val"] = _evaluated(user)
            except RuntimeError:
                continue
            _follow(user)

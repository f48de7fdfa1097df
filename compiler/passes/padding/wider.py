"""The loops that make a matrix of some columns, run over more of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

aten = torch.ops.aten

#: Calls that give what they take, as it is or in another dtype.
SAME = (aten._to_copy.default, aten.alias.default, aten.detach.default)
VIEWS = frozenset((
    aten.view.default, aten._unsafe_view.default, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default, aten.detach.default,
))  # fmt: skip


class Wider:
    """A matrix of `columns` columns at `width` of them. `call` makes a node: what it stands for, then the call."""

    def __init__(self, call: Callable[..., Node], columns: int, width: int) -> None:
        self.call, self.columns, self.width = call, columns, width
        self.known: dict[Node, Node] = {}
        self._covered: dict[Node, bool] = {}

    def covers(self, node: Any) -> bool:
        """Whether each element of `node` depends on its own place in the row, and on what is wide enough already."""
        if not isinstance(node, Node):
            return True
        if node not in self._covered:
            self._covered[node] = self._covers(node)
        return self._covered[node]

    def _covers(self, node: Node) -> bool:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return False
        if not value.dim() or value.shape[-1] == 1 or self._is_cut_from_wider(node):
            return True
        if value.shape[-1] != self.columns:
            return False
        if node.target is aten.scatter.value:
            arguments: Any = node.args
            zeros, dim, index, _ = arguments
            is_along_rows = dim % value.dim() == value.dim() - 1 and index.meta["val"].shape[-1] == 1
            return bool(is_along_rows and zeros.target in (aten.full.default, aten.full_like.default))
        if node.target in (aten.view.default, aten._unsafe_view.default):
            source: Any = node.args[0]
            return source.meta["val"].shape[-1] == self.columns and self.covers(source)
        is_pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ()) or node.target in SAME
        return is_pointwise and not _is_random(node) and all(map(self.covers, node.all_input_nodes))

    def _is_cut_from_wider(self, node: Node) -> bool:
        if node.target is not aten.slice.Tensor or list(node.args[1:]) != [1, 0, self.columns]:
            return False
        return bool(node.args[0].meta["val"].shape[-1] == self.width)  # type: ignore[union-attr]

    def bordered(self, node: Node) -> Node:
        """The same at the greater width, with zeros beyond the matrix."""
        like, value = node.meta["val"], self.node(node)
        place = self.call(node, aten.arange.default, self.width, device=like.device, pin_memory=False)
        is_inside = self.call(node, aten.lt.Scalar, place, self.columns)
        zero = self.call(node, aten.scalar_tensor.default, 0.0, dtype=like.dtype, device=like.device)
        return self.call(node, aten.where.self, is_inside, value, zero)

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
        if node.target is aten.scatter.value:
            zeros, *rest = node.args
            settings = {"dtype": value.dtype, "device": value.device, "pin_memory": False}
            wider = self.call(zeros, aten.full.default, shape, zeros.args[1], **settings)  # type: ignore[arg-type, union-attr]
            return self.call(node, node.target, wider, *rest)
        if node.target in (aten.view.default, aten._unsafe_view.default):
            return self.call(node, node.target, self.node(node.args[0]), shape)  # type: ignore[arg-type]
        args: Any = torch.fx.node.map_arg(node.args, self.node)
        return self.call(node, node.target, *args, **node.kwargs)


def _is_random(node: Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

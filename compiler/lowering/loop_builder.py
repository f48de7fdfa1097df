"""What lowerings build loops with: names, layouts, and one node a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.fx

import compiler.functions  # noqa: F401  (which defines what is called here by name)
from compiler.fx.notes import lines_noted, origins
from compiler.ir.body import trace
from compiler.ir.canonical import canonicalise
from compiler.ir.float8 import FLOAT8
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, LoopNode, Node
from compiler.ir.ops import HALF_TYPES, ops
from compiler.ir.size import Integer, Symbol, hint
from compiler.lowering.channels_last import ChannelsLast
from compiler.lowering.constants import constant_result
from compiler.lowering.eager import EagerTensor, eager_tensors
from compiler.lowering.streams import stream_of
from compiler.lowering.strides import is_dense
from compiler.lowering.values import SUPPORTED_DTYPES, CannotLower, Position, TensorValue, of_buffer

Element = Callable[[Position, Position], Any]

#: Where a scatter updates, by what value, and the truth value that says whether it does (None: always).
Update = tuple[Position, Any, Any]

SEEDS = "seeds"

#: Operations that an op counts as from which on a tensor that takes it and reads nothing is a node like any other.
EXPENSIVE_OPERATION = 10


def as_element(value: Any, dtype: torch.dtype) -> Any:
    """A value of a body as an element of a tensor of `dtype`. A float8 is rounded here, the half types where they are
    stored."""
    value = value.to(dtype)
    return ops.call(FLOAT8[dtype].rounding, value) if dtype in FLOAT8 else value


def _may_be_a_table(node: LoopNode) -> bool:
    """Whether the elements of a node that reads nothing may take longer to compute than to read, as the angles of
    positions, which all heads share. Whether they do is the scheduler's to say, who sees what reads them."""
    return node.body.most_expensive >= EXPENSIVE_OPERATION and hint(node.layout.numel) > 1


class LoopBuilder:
    """The graph under construction, and the FX node that is being lowered."""

    def __init__(self, channels_last: ChannelsLast | None = None) -> None:
        self.graph = LoopGraph()
        #: Which convolutions are channels-last although eager's are not; None where none is.
        self.channels_last = channels_last
        self.node: torch.fx.Node | None = None
        #: The tensors that the node takes.
        self.arguments: tuple[TensorValue, ...] = ()
        #: What eager mode's result of that node looks like: an `EagerTensor`, or several in a list.
        self.eager: Any = None
        self.device = torch.device("cpu")
        #: Whether programs that share a row of a scan may wait for those before them.
        self.looks_back = False
        #: Whether the GPU adds half types at addresses of memory by one operation.
        self.adds_half_types = False
        #: What eager's tensor of a value looks like, by the value's id.
        self.eager_of: dict[int, EagerTensor] = {}
        #: Buffers that lie on another device than the graph's.
        self.elsewhere: set[str] = set()
        #: Sizes that only a run of the graph tells, as far as they are told by what stands here so far.
        self.known_sizes: set[Symbol] = set()
        self._nodes: list[Node] = []
        #: Names that are taken, in the order in which they were.
        self._names: dict[str, None] = {SEEDS: None}
        self._inputs: set[str] = set()
        self._made_by_loops: set[str] = set()

    # --- names and layouts

    def fresh_name(self, wanted: str) -> str:
        """`wanted`, or the nearest name that no buffer has."""
        name = wanted if wanted not in self._inputs else f"buf_{wanted}"
        number = 1
        while name in self._names:
            name = f"{wanted}_{number}"
            number += 1
        self._names[name] = None
        return name

    def _name_of_node(self, label: str) -> str:
        return self.fresh_name(f"{self.origin}_{label}" if label else self.origin)

    def add_input(self, name: str, layout: Layout) -> TensorValue:
        self._names[name] = None
        self._inputs.add(name)
        self.graph.buffers[name] = layout
        return of_buffer(name, layout)

    def add_constant(self, name: str, tensor: torch.Tensor) -> TensorValue:
        """A tensor that the graph holds."""
        self.graph.constants[name] = tensor
        if tensor.device.type != self.device.type:
            self.elsewhere.add(name)
        return self.add_input(name, Layout(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype))

    def result_layout(self, shape: tuple[Integer, ...], dtype: torch.dtype) -> Layout:
        """The layout of a result of the current node: eager's strides where they are dense, else contiguous."""
        strides = self._eager_strides(shape)
        if strides is None:
            return Layout.contiguous(shape, dtype)
        if self.channels_last is not None:
            strides = self.channels_last.layout_for(shape, strides, self.arguments, self.eager_of)
        return Layout(shape, strides, dtype)

    def _eager_strides(self, shape: tuple[Integer, ...]) -> tuple[Integer, ...] | None:
        """Eager's strides of the current node's result of this shape, where they are dense."""
        for tensor in eager_tensors(self.eager):
            if tensor.shape == shape and is_dense(shape, tensor.stride()):
                return tensor.stride()
        return None

    @property
    def origin(self) -> str:
        return "constant" if self.node is None else self.node.name

    @property
    def _provenance(self) -> dict[str, Any]:
        if self.node is None:
            return {}
        # A rewrite of the graph leaves word of the captured nodes that a node of its own is made for.
        return {"origins": origins(self.node), "lines": lines_noted(self.node), "stream": stream_of(self.node)}

    # --- loop nodes

    def pointwise(
        self, shape: tuple[Integer, ...], dtype: torch.dtype, element: Callable[[Position], Any], *,
        label: str = "", layout: Layout | None = None, materialise: bool = False,
    ) -> TensorValue:  # fmt: skip
        """One node that computes each element from its position. Where the element reads nothing and takes little, it
        stays a formula that is repeated at its readers, unless `materialise` asks for a buffer."""
        if dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute {dtype}")
        if 0 in shape and not materialise:
            return TensorValue(shape, dtype, None, formula=lambda position: ops.constant(0, dtype))
        if 0 in shape:
            return self._empty(layout or self.result_layout(shape, dtype), label)

        def converted(position: Position) -> Any:
            return as_element(element(position), dtype)

        node = self._loop(layout or self.result_layout(shape, dtype), (), lambda x, _: converted(x), label)
        if not (materialise or node.body.reads or node.body.is_random or _may_be_a_table(node)):
            del self._names[node.name]
            return TensorValue(shape, dtype, None, formula=converted)
        return self._add_loop(node)

    def reduction(
        self, shape: tuple[Integer, ...], dtype: torch.dtype, sizes: Sequence[Integer], element: Element, *,
        label: str = "", layout: Layout | None = None,
    ) -> TensorValue:  # fmt: skip
        """One node that reduces over loops of `sizes`: `element(position, reduced)` calls `ops.reduce` once and may go
        on with its result. Neither `shape` nor `sizes` may hold a zero (an empty reduction is a constant)."""
        if dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute {dtype}")

        def converted(position: Position, reduced: Position) -> Any:
            return as_element(element(position, reduced), dtype)

        node = self._loop(layout or self.result_layout(shape, dtype), tuple(sizes), converted, label)
        constant = constant_result(node)
        if constant is not None:
            del self._names[node.name]
            return TensorValue(shape, dtype, None, formula=lambda _: ops.constant(constant, dtype))
        return self._add_loop(node)

    def scan(
        self, shape: tuple[Integer, ...], dtype: torch.dtype, at: int, element: Callable[[Position], Any], *,
        label: str = "", layout: Layout | None = None,
    ) -> TensorValue:  # fmt: skip
        """One node whose `element(position)` calls `ops.scan` once, along the dimension `at`. `shape` holds no zero."""
        if dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute {dtype}")
        layout = layout or self.result_layout(shape, dtype)
        name = self._name_of_node(label)
        dims = [Dim("r0" if axis == at else f"x{axis}", size) for axis, size in enumerate(shape)]
        position = tuple(Index.of(dim) for dim in dims)
        body = trace(lambda: ops.store(name, layout.index(position), as_element(element(position), dtype)))
        others = [axis for axis in range(len(dims)) if axis != at]
        storage_order = sorted(others, key=lambda axis: (-hint(layout.stride[axis]), axis))
        x_dims = tuple(dims[axis] for axis in storage_order)
        return self._add_loop(canonicalise(LoopNode(name, layout, x_dims, (dims[at],), body, **self._provenance)))

    def scatter(
        self, start: TensorValue, sources: tuple[Integer, ...], mode: str, update: Callable[[Position], Update], *,
        label: str = "",
    ) -> TensorValue:  # fmt: skip
        """One node that changes the buffer of `start` in place, at a place for each position of a loop over `sources`,
        in row-major order. `start` is a buffer of the caller's own making that nothing else reads."""
        assert start.buffer is not None
        layout = self.graph.buffers[start.buffer]
        name = self._name_of_node(label)
        dims = tuple(Dim(f"x{axis}", size) for axis, size in enumerate(sources))

        def body() -> Any:
            target, value, mask = update(tuple(Index.of(dim) for dim in dims))
            return ops.scatter(name, layout.index(target), as_element(value, start.dtype), mode, mask)

        node = LoopNode(name, layout, dims, (), trace(body), **self._provenance, updates=start.buffer)
        return self._add_loop(canonicalise(node))

    def check(self, holds: Callable[[], Any], message: str) -> None:
        """One node that fails with `message` where the truth value that `holds` computes is false."""
        node = self._loop(Layout.contiguous((), torch.bool), (), lambda x, r: holds(), "")
        self._add_loop(replace(node, check=message))

    def _loop(self, layout: Layout, sizes: tuple[Integer, ...], element: Element, label: str) -> LoopNode:
        name = self._name_of_node(label)
        dims = [Dim(f"x{axis}", size) for axis, size in enumerate(layout.shape)]
        reduced = [Dim(f"r{axis}", size) for axis, size in enumerate(sizes)]
        position = tuple(Index.of(dim) for dim in dims)
        body = trace(lambda: ops.store(
            name, layout.index(position), element(position, tuple(Index.of(dim) for dim in reduced))
        ))  # fmt: skip
        storage_order = sorted(range(len(dims)), key=lambda axis: (-hint(layout.stride[axis]), axis))
        # Reductions run in the order of the memory that they read, so that their loops merge.
        strides = [body.reads[0].index.stride(dim) if body.reads else None for dim in reduced]
        steps = [0 if stride is None else stride for stride in strides]
        reading_order = sorted(range(len(reduced)), key=lambda axis: (-abs(hint(steps[axis])), axis))
        x_dims = tuple(dims[axis] for axis in storage_order)
        r_dims = tuple(reduced[axis] for axis in reading_order)
        return canonicalise(LoopNode(name, layout, x_dims, r_dims, body, **self._provenance))

    def may_be_unrounded(self, value: TensorValue) -> bool:
        """Whether a kernel may go on with its elements before they are rounded to their dtype."""
        return value.dtype in HALF_TYPES and value.buffer in self._made_by_loops

    def _add_loop(self, node: LoopNode) -> TensorValue:
        self._nodes.append(node)
        self._made_by_loops.add(node.name)
        self.graph.buffers[node.name] = node.layout
        if self.channels_last is not None:
            self.channels_last.made(node, self._eager_strides(node.layout.shape))
        return of_buffer(node.name, node.layout)

    def _empty(self, layout: Layout, label: str) -> TensorValue:
        arguments = (list(layout.shape), list(layout.stride))
        keywords = {"dtype": layout.dtype, "device": self.device}
        name = self._name_of_node(label)
        self._nodes.append(ExternNode(
            name, torch.ops.aten.empty_strided.default, arguments, keywords, ((name, layout),),
            reason="A tensor without elements is only allocated.", **self._provenance,
        ))  # fmt: skip
        self.graph.buffers[name] = layout
        return of_buffer(name, layout)

"""What lowerings build nodes with: names, layouts, loop nodes, library calls and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.fx

import compiler.functions  # noqa: F401  (which defines what is called here by name)
from compiler.ir.body import trace
from compiler.ir.canonical import canonicalise
from compiler.ir.float8 import FLOAT8
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, LoopNode, Node, TensorArgument
from compiler.ir.ops import ops
from compiler.ir.size import Integer, Undecided, hint
from compiler.lowering.channels_last import ChannelsLast
from compiler.lowering.eager import EagerTensor
from compiler.lowering.values import SUPPORTED_DTYPES, CannotLower, Position, TensorValue, of_buffer

Element = Callable[[Position, Position], Any]
#: Where a scatter updates, by what value, and the truth value that says whether it does (None: always).
Update = tuple[Position, Any, Any]

SEEDS = "seeds"


def _by_stride(shape: Sequence[Integer], stride: Sequence[Integer]) -> list[tuple[Integer, Integer]]:
    """Strides and sizes of the dimensions of more than one element, the innermost first."""
    pairs = [(step, size) for step, size in zip(stride, shape, strict=True) if size not in (0, 1)]
    return sorted(pairs, key=lambda pair: (hint(pair[0]), hint(pair[1])))


def is_dense(shape: Sequence[Integer], stride: Sequence[Integer]) -> bool:
    """Whether every element of the storage belongs to exactly one element of the tensor."""
    expected: Integer = 1
    if 0 in shape:
        return False
    for step, size in _by_stride(shape, stride):
        if step != expected:
            return False
        expected = expected * size
    return True


def _is_whole(layout: Layout, buffer: Layout) -> bool:
    """Whether a view is of its whole buffer; the stride of a dimension of one element says nothing."""
    alike = (size == 1 or a == b for size, a, b in zip(buffer.shape, layout.stride, buffer.stride, strict=False))
    return layout.shape == buffer.shape and layout.offset == buffer.offset and all(alike)


def overlaps(shape: Sequence[Integer], stride: Sequence[Integer]) -> bool:
    """Whether two elements of the tensor may share memory (never so for strides that nest, gaps or not)."""
    reached: Integer = 0
    for step, size in _by_stride(shape, stride):
        try:
            if step <= reached:
                return True
        except Undecided:
            return True
        reached = reached + step * (size - 1)
    return False


def eager_tensors(value: Any) -> list[EagerTensor]:
    """The tensors in the value of an FX node."""
    if isinstance(value, EagerTensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in eager_tensors(item)]
    return []


def tf32_is_allowed() -> bool:
    """Whether torch was told to compute products of float32 in TensorFloat-32 on GPUs."""
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def as_element(value: Any, dtype: torch.dtype) -> Any:
    """A value of a body as an element of a tensor of `dtype`. A float8 is rounded here, the half types where they are
    stored."""
    value = ops.to_dtype(value, dtype)
    return ops.call(FLOAT8[dtype].rounding, value) if dtype in FLOAT8 else value


class Builder:
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
        self.seeds = 0
        #: What eager's tensor of a value looks like, by the value's id.
        self.eager_of: dict[int, EagerTensor] = {}
        #: Buffers that lie on another device than the graph's.
        self.elsewhere: set[str] = set()
        self._moved: dict[int, tuple[TensorValue, TensorValue]] = {}
        self._nodes: list[Node] = []
        self._names: set[str] = {SEEDS}
        self._inputs: set[str] = set()
        self._materialised: dict[int, tuple[TensorValue, TensorValue]] = {}
        self._expanded: dict[int, tuple[TensorValue, TensorArgument]] = {}

    # --- names and layouts

    def fresh_name(self, wanted: str) -> str:
        """`wanted`, or the nearest name that no buffer has."""
        name = wanted if wanted not in self._inputs else f"buf_{wanted}"
        number = 1
        while name in self._names:
            name = f"{wanted}_{number}"
            number += 1
        self._names.add(name)
        return name

    def add_input(self, name: str, layout: Layout) -> TensorValue:
        self._names.add(name)
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
            strides = self.channels_last.layout_for(shape, strides, self)
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
        origins = self.node.meta.get("computed_for") or (self.node.name, *self.node.meta.get("stands_for", ()))
        return {"origins": origins, "lines": tuple(self.node.meta.get("lines", ()))}

    # --- loop nodes

    def pointwise(
        self, shape: tuple[Integer, ...], dtype: torch.dtype, element: Callable[[Position], Any], *,
        label: str = "", layout: Layout | None = None, materialise: bool = False,
    ) -> TensorValue:  # fmt: skip
        """One node that computes each element from its position. Where the element reads nothing, it stays a formula
        that is repeated at its readers, unless `materialise` asks for a buffer."""
        if dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute {dtype}")
        if 0 in shape and not materialise:
            return TensorValue(shape, dtype, None, formula=lambda position: ops.constant(0, dtype))
        if 0 in shape:
            return self._empty(layout or self.result_layout(shape, dtype), label)

        def converted(position: Position) -> Any:
            return as_element(element(position), dtype)

        node = self._loop(layout or self.result_layout(shape, dtype), (), lambda x, _: converted(x), label)
        if not materialise and not node.body.reads and not node.body.is_random:
            self._names.discard(node.name)
            return TensorValue(shape, dtype, None, formula=converted)
        return self._add_loop(node)

    def reduction(
        self, shape: tuple[Integer, ...], dtype: torch.dtype, sizes: Sequence[Integer], element: Element, *,
        label: str = "",
    ) -> TensorValue:  # fmt: skip
        """One node that reduces over loops of `sizes`: `element(position, reduced)` calls `ops.reduce` once and may go
        on with its result. Neither `shape` nor `sizes` may hold a zero (an empty reduction is a constant)."""
        if dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute {dtype}")

        def converted(position: Position, reduced: Position) -> Any:
            return as_element(element(position, reduced), dtype)

        node = self._loop(self.result_layout(shape, dtype), tuple(sizes), converted, label)
        return self._add_loop(node)

    def scan(
        self, shape: tuple[Integer, ...], dtype: torch.dtype, at: int, element: Callable[[Position], Any], *,
        label: str = "",
    ) -> TensorValue:  # fmt: skip
        """One node whose `element(position)` calls `ops.scan` once, along the dimension `at`. `shape` holds no zero."""
        if dtype not in SUPPORTED_DTYPES:
            raise CannotLower(f"loops do not compute {dtype}")
        name, layout = self.fresh_name(self.origin + (f"_{label}" if label else "")), self.result_layout(shape, dtype)
        dims = [Dim("r0" if place == at else f"x{place}", size) for place, size in enumerate(shape)]
        position = tuple(Index.of(dim) for dim in dims)
        try:
            body = trace(lambda: ops.store(name, layout.index(position), as_element(element(position), dtype)))
        except BaseException:
            self._names.discard(name)
            raise
        others = [place for place in range(len(dims)) if place != at]
        storage_order = sorted(others, key=lambda place: (-hint(layout.stride[place]), place))
        x_dims = tuple(dims[place] for place in storage_order)
        return self._add_loop(canonicalise(LoopNode(name, layout, x_dims, (dims[at],), body, **self._provenance)))

    def scatter(
        self, start: TensorValue, sources: tuple[Integer, ...], mode: str, update: Callable[[Position], Update], *,
        label: str = "",
    ) -> TensorValue:  # fmt: skip
        """One node that changes the buffer of `start` in place, at a place for each position of a loop over `sources`,
        in row-major order. `start` is a buffer of the caller's own making that nothing else reads."""
        assert start.buffer is not None
        layout = self.graph.buffers[start.buffer]
        name = self.fresh_name(self.origin + (f"_{label}" if label else ""))
        dims = tuple(Dim(f"x{place}", size) for place, size in enumerate(sources))

        def body() -> Any:
            place, value, mask = update(tuple(Index.of(dim) for dim in dims))
            return ops.scatter(name, layout.index(place), as_element(value, start.dtype), mode, mask)

        try:
            node = LoopNode(name, layout, dims, (), trace(body), **self._provenance, updates=start.buffer)
        except BaseException:
            self._names.discard(name)
            raise
        return self._add_loop(canonicalise(node))

    def _loop(self, layout: Layout, sizes: tuple[Integer, ...], element: Element, label: str) -> LoopNode:
        name = self.fresh_name(self.origin + (f"_{label}" if label else ""))
        dims = [Dim(f"x{place}", size) for place, size in enumerate(layout.shape)]
        reduced = [Dim(f"r{place}", size) for place, size in enumerate(sizes)]
        position = tuple(Index.of(dim) for dim in dims)
        try:
            body = trace(lambda: ops.store(
                name, layout.index(position), element(position, tuple(Index.of(dim) for dim in reduced))
            ))  # fmt: skip
        except BaseException:
            self._names.discard(name)
            raise
        storage_order = sorted(range(len(dims)), key=lambda place: (-hint(layout.stride[place]), place))
        # Reductions run in the order of the memory that they read, so that their loops merge.
        strides = [body.reads[0].index.stride(dim) if body.reads else None for dim in reduced]
        steps = [0 if stride is None else stride for stride in strides]
        reading_order = sorted(range(len(reduced)), key=lambda place: (-abs(hint(steps[place])), place))
        x_dims = tuple(dims[place] for place in storage_order)
        r_dims = tuple(reduced[place] for place in reading_order)
        return canonicalise(LoopNode(name, layout, x_dims, r_dims, body, **self._provenance))

    def _add_loop(self, node: LoopNode) -> TensorValue:
        self._nodes.append(node)
        self.graph.buffers[node.name] = node.layout
        if self.channels_last is not None:
            self.channels_last.made(node, self._eager_strides(node.layout.shape))
        return of_buffer(node.name, node.layout)

    def _empty(self, layout: Layout, label: str) -> TensorValue:
        arguments = (list(layout.shape), list(layout.stride))
        keywords = {"dtype": layout.dtype, "device": self.device}
        name = self.fresh_name(self.origin + (f"_{label}" if label else ""))
        self._nodes.append(ExternNode(
            name, torch.ops.aten.empty_strided.default, arguments, keywords, ((name, layout),),
            reason="A tensor without elements is only allocated.", **self._provenance,
        ))  # fmt: skip
        self.graph.buffers[name] = layout
        return of_buffer(name, layout)

    # --- whole tensors

    def materialise(self, value: TensorValue, layout: Layout | None = None, label: str = "copy") -> TensorValue:
        """`value` in a buffer of its own, of the given layout (the first asked for is shared)."""
        known = self._materialised.get(id(value))
        if known is not None and (layout is None or known[1].layout() == layout):
            return known[1]
        stored = self.copied(value, layout or Layout.contiguous(value.shape, value.dtype), label)
        # The value is kept with its copy so that its id stays its own.
        self._materialised[id(value)] = (value, stored)
        return stored

    def copied(self, value: TensorValue, layout: Layout, label: str) -> TensorValue:
        """`value` in a buffer that nothing else has."""
        return self.pointwise(value.shape, value.dtype, value.load, label=label, layout=layout, materialise=True)

    def argument(self, value: TensorValue) -> TensorArgument:
        """`value` as a library call takes it: a strided view of a buffer, copied where it is none."""
        fake = self.eager_of.get(id(value))
        value = self.where_eager_has_it(value)
        layout = value.layout()
        if layout is None and fake is not None and 0 in fake.stride():
            return self._repeated(value, fake)
        if layout is None:
            wanted = Layout.contiguous(value.shape, value.dtype)
            if fake is not None and not overlaps(value.shape, fake.stride()):
                # Gaps too: eager may have made them so that rows start where a library wants them to.
                wanted = Layout(value.shape, fake.stride(), value.dtype)
            value = self.materialise(value, wanted)
            layout = value.layout()
        assert value.buffer is not None and layout is not None
        return TensorArgument(value.buffer, with_eager_strides(layout, fake))

    def _repeated(self, value: TensorValue, eager: EagerTensor) -> TensorArgument:
        """A tensor that eager expands, in a buffer that holds each of its elements once, at eager's strides."""
        known = self._expanded.get(id(value))
        if known is not None:
            return known[1]
        once = tuple(1 if stride == 0 else size for size, stride in zip(value.shape, eager.stride(), strict=True))
        zero = Index.number(0)
        distinct = value.view(
            once, lambda position: tuple(zero if size == 1 else i for i, size in zip(position, once, strict=True))
        )
        wanted = Layout.contiguous(once, value.dtype)
        if not overlaps(once, eager.stride()):
            wanted = Layout(once, eager.stride(), value.dtype)
        stored = self.materialise(distinct, wanted)
        assert stored.buffer is not None
        strides = tuple(0 if stride == 0 else own for stride, own in zip(eager.stride(), wanted.stride, strict=True))
        argument = TensorArgument(stored.buffer, Layout(value.shape, strides, value.dtype))
        self._expanded[id(value)] = value, argument
        return argument

    def extern(
        self, target: Any, args: Any, kwargs: dict[str, Any], *, is_fallback: bool, reason: str, result: Any = ...
    ) -> Any:
        """A library call for the current node; the value has the structure of `result`, by default the node's `val`."""
        if self.channels_last is not None:
            args, kwargs = self.channels_last.as_eager(self, target, (args, kwargs))
        arguments = tuple(self._argument_tree(value) for value in args)
        keywords = {key: self._argument_tree(value) for key, value in kwargs.items()}
        if result is ...:
            result = self.eager
        returns_sequence = isinstance(result, list | tuple)
        outputs = self._extern_outputs(result if isinstance(result, list | tuple) else [result], returns_sequence)
        own_name = self.fresh_name(self.origin) if returns_sequence or outputs[0] is None else outputs[0][0]
        self._nodes.append(ExternNode(
            own_name, target, arguments, keywords, outputs, is_fallback=is_fallback,
            returns_sequence=returns_sequence, reason=reason, allows_tf32=tf32_is_allowed(), **self._provenance,
        ))  # fmt: skip
        values = tuple(None if output is None else of_buffer(*output) for output in outputs)
        return values if returns_sequence else values[0]

    def lies_elsewhere(self, value: TensorValue) -> bool:
        """Whether a kernel on the graph's device would have to read another device's memory."""
        return value.buffer is not None and value.buffer in self.elsewhere

    def where_eager_has_it(self, value: TensorValue) -> TensorValue:
        """`value` on the device where eager mode has it: what eager computes on a CPU beside a GPU (a range, a mask) is
        computed by our kernels on the GPU."""
        eager = self.eager_of.get(id(value))
        if eager is None or eager.device.type == self.device.type or self.lies_elsewhere(value):
            return value
        return self.move(value, eager.device)

    def move(self, value: TensorValue, device: torch.device) -> TensorValue:
        """A copy on another device, or the one that was made before."""
        known = self._moved.get(id(value))
        if known is not None:
            return known[1]
        constant = self.graph.constants.get(value.buffer or "")
        if constant is not None and value.layout() == self.graph.buffers[value.buffer or ""]:
            moved = self.add_constant(self.fresh_name(f"{value.buffer}_moved"), constant.to(device))
            self._moved[id(value)] = value, moved
            return moved
        source = value if value.layout() is not None else self.materialise(value)
        layout = source.layout()
        assert source.buffer is not None and layout is not None
        wanted = copied = Layout.contiguous(value.shape, value.dtype)
        if is_dense(layout.shape, layout.stride):
            wanted = copied = Layout(value.shape, layout.stride, value.dtype)
        elif _is_whole(layout, self.graph.buffers[source.buffer]) and not overlaps(layout.shape, layout.stride):
            # Memory of its own with gaps between the elements: copied whole, which keeps the strides.
            wanted = self.graph.buffers[source.buffer]
            layout = Layout.contiguous((wanted.storage_numel,), value.dtype)
            copied = layout
        name = self.fresh_name(f"{self.origin}_moved")
        self.graph.buffers[name] = copied
        argument = TensorArgument(source.buffer, layout)
        self._nodes.append(ExternNode(
            name, torch.ops.aten._to_copy.default, (argument,), {"device": device}, ((name, copied),),
            reason="A tensor is copied to the device that computes with it.", **self._provenance,
        ))  # fmt: skip
        if device.type != self.device.type:
            self.elsewhere.add(name)
        moved = of_buffer(name, wanted)
        self._moved[id(value)] = value, moved
        return moved

    def _extern_outputs(self, results: Sequence[Any], is_sequence: bool) -> tuple[tuple[str, Layout] | None, ...]:
        outputs: list[tuple[str, Layout] | None] = []
        for place, fake in enumerate(results):
            if not isinstance(fake, EagerTensor):
                outputs.append(None)
                continue
            name = self.fresh_name(f"{self.origin}_{place}" if is_sequence else self.origin)
            layout = Layout(fake.shape, fake.stride(), fake.dtype)
            self.graph.buffers[name] = layout
            if fake.device.type != self.device.type:
                self.elsewhere.add(name)
            outputs.append((name, layout))
        return tuple(outputs)

    def _argument_tree(self, value: Any) -> Any:
        if isinstance(value, TensorValue):
            return self.argument(value)
        if isinstance(value, list | tuple):
            return type(value)(self._argument_tree(item) for item in value)
        return value

    # --- random numbers

    def next_seed(self) -> int:
        """The element of the seed buffer that belongs to the random operator at hand."""
        self.seeds += 1
        return self.seeds - 1

    # --- undoing and finishing

    def checkpoint(self) -> tuple[int, frozenset[str], int]:
        return len(self._nodes), frozenset(self._names), self.seeds

    def roll_back(self, checkpoint: tuple[int, frozenset[str], int]) -> None:
        """Forget the nodes that were added since the checkpoint, after a lowering gave up half-way."""
        count, names, self.seeds = checkpoint
        del self._nodes[count:]
        for name in self._names - names:
            self.graph.buffers.pop(name, None)
        self._names = set(names)
        kept = self.graph.buffers
        self._materialised = {key: pair for key, pair in self._materialised.items() if pair[1].buffer in kept}
        self._moved = {key: pair for key, pair in self._moved.items() if pair[1].buffer in kept}
        self._expanded = {key: pair for key, pair in self._expanded.items() if pair[1].buffer in kept}
        self.elsewhere &= set(kept)
        if self.channels_last is not None:
            self.channels_last.forget(kept)
        for name in set(self.graph.constants) - set(kept):
            del self.graph.constants[name]

    def finish(self) -> LoopGraph:
        """The graph, with the node that draws the seeds in front where one is needed."""
        self.graph.nodes = [self._with_devices(node) for node in self._nodes]
        if self.seeds:
            layout = Layout((self.seeds,), (1,), torch.int64)
            self.graph.buffers[SEEDS] = layout
            self.graph.nodes.insert(0, ExternNode(
                SEEDS, torch.ops.aten.randint.low, (-(2**63), 2**63 - 1, [self.seeds]),
                {"dtype": torch.int64, "device": self.device}, ((SEEDS, layout),),
                reason="Seeds come from torch's own generator, so that torch.manual_seed repeats a run.",
            ))  # fmt: skip
        return self.graph

    def _with_devices(self, node: Node) -> Node:
        if isinstance(node, ExternNode) and not self.elsewhere.isdisjoint((*node.read_buffers, *node.write_buffers)):
            return replace(node, crosses_devices=True)
        return node


def with_eager_strides(layout: Layout, fake: EagerTensor | None) -> Layout:
    """The layout with eager's strides for dimensions of size one, whose strides no index can tell."""
    if fake is None or fake.shape != layout.shape:
        return layout
    is_free = layout.numel == 0
    strides = tuple(
        eager if size == 1 or is_free else own
        for size, own, eager in zip(layout.shape, layout.stride, fake.stride(), strict=True)
    )
    return replace(layout, stride=strides)

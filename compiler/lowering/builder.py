"""What lowerings build nodes with: loops, library calls and their arguments, copies between devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.fx

from compiler.ir.index import ZERO
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, Node, TensorArgument
from compiler.ir.size import Integer
from compiler.lowering.channels_last import ChannelsLast, lies_alike
from compiler.lowering.eager import EagerTensor
from compiler.lowering.late_sizes import in_order_of_sizes, told_by
from compiler.lowering.loop_builder import SEEDS, LoopBuilder
from compiler.lowering.strides import is_dense, is_whole, overlaps, with_eager_strides
from compiler.lowering.values import SUPPORTED_DTYPES, TensorValue, of_buffer

aten = torch.ops.aten

#: Library calls that take a matrix whichever way it lies.
PRODUCTS = frozenset({aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.addmv, aten.dot, aten.vdot})


def tf32_is_allowed() -> bool:
    """Whether torch was told to compute products of float32 in TensorFloat-32 on GPUs."""
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def _takes_it(target: Any, layout: Layout, eager: Sequence[Integer]) -> bool:
    if lies_alike(layout.shape, layout.stride, eager):
        return True
    is_product = getattr(target, "overloadpacket", None) in PRODUCTS
    return is_product and 1 in layout.stride[-2:]


class Builder(LoopBuilder):
    """The graph under construction, with library calls beside loops."""

    def __init__(self, channels_last: ChannelsLast | None = None) -> None:
        super().__init__(channels_last)
        self.seeds = 0
        self._moved: dict[int, tuple[TensorValue, TensorValue]] = {}
        self._materialised: dict[int, tuple[TensorValue, TensorValue]] = {}
        self._expanded: dict[int, tuple[TensorValue, TensorArgument]] = {}

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
        source = value.layout()
        if value.dtype in SUPPORTED_DTYPES or source is None or value.buffer is None:
            return self.pointwise(value.shape, value.dtype, value.load, label=label, layout=layout, materialise=True)
        name = self.fresh_name(f"{self.origin}_{label or 'copy'}")
        self.graph.buffers[name] = layout
        self._nodes.append(ExternNode(
            name, torch.ops.aten.clone.default, (TensorArgument(value.buffer, source),), {}, ((name, layout),),
            reason=f"Loops do not copy {value.dtype}.", **self._provenance,
        ))  # fmt: skip
        return of_buffer(name, layout)

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
        distinct = value.view(
            once, lambda position: tuple(ZERO if size == 1 else i for i, size in zip(position, once, strict=True))
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

    def _lying_as_eager(self, layouts: ChannelsLast, target: Any, arguments: Any) -> Any:
        """The arguments of a library call, each tensor with eager's strides; a product takes a matrix as it lies."""
        if isinstance(arguments, list | tuple):
            return type(arguments)(self._lying_as_eager(layouts, target, item) for item in arguments)
        if isinstance(arguments, dict):
            return {key: self._lying_as_eager(layouts, target, item) for key, item in arguments.items()}
        if not isinstance(arguments, TensorValue) or arguments.buffer not in layouts.moved:
            return arguments
        known, layout = self.eager_of.get(id(arguments)), arguments.layout()
        if known is None or 0 in known.stride() or (layout is not None and _takes_it(target, layout, known.stride())):
            return arguments
        stored = self.materialise(
            arguments, Layout(arguments.shape, known.stride(), arguments.dtype), label="contiguous"
        )
        self.eager_of.setdefault(id(stored), known)
        layouts.moved.pop(stored.buffer or "", None)
        layouts.converted_back(arguments, stored, "argument", self.origin)
        return stored

    def extern(
        self, target: Any, args: Any, kwargs: dict[str, Any], *, is_fallback: bool, reason: str, result: Any = ...
    ) -> Any:
        """A library call for the current node; the value has the structure of `result`, by default the node's `val`."""
        if self.channels_last is not None:
            args, kwargs = self._lying_as_eager(self.channels_last, target, (args, kwargs))
        arguments = tuple(self._argument_tree(value) for value in args)
        keywords = {key: self._argument_tree(value) for key, value in kwargs.items()}
        if result is ...:
            result = self.eager
        returns_sequence = isinstance(result, list | tuple)
        outputs = self._extern_outputs(result if isinstance(result, list | tuple) else [result], returns_sequence)
        own_name = self.fresh_name(self.origin) if returns_sequence or outputs[0] is None else outputs[0][0]
        sizes = told_by(result, self.known_sizes)
        self.known_sizes.update(symbol for symbol, _, _ in sizes)
        if sizes and not any(output is not None and output[0] == own_name for output in outputs):
            # Who needs a size waits for the call by this name, which no tensor has.
            self.graph.buffers[own_name] = Layout((), (), torch.int64)
        self._nodes.append(ExternNode(
            own_name, target, arguments, keywords, outputs, is_fallback=is_fallback,
            returns_sequence=returns_sequence, reason=reason, allows_tf32=tf32_is_allowed(), sizes=sizes,
            covers=(own_name,) if sizes else (), **self._provenance,
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
        elif is_whole(layout, self.graph.buffers[source.buffer]) and not overlaps(layout.shape, layout.stride):
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
        for position, fake in enumerate(results):
            if not isinstance(fake, EagerTensor):
                outputs.append(None)
                continue
            name = self.fresh_name(f"{self.origin}_{position}" if is_sequence else self.origin)
            layout = Layout(fake.shape, fake.stride(), fake.dtype)
            if overlaps(fake.shape, fake.stride()):
                # A view in eager mode, of which the call gives a copy.
                layout = Layout.contiguous(fake.shape, fake.dtype)
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

    def checkpoint(self) -> tuple[int, int, int]:
        return len(self._nodes), len(self._names), self.seeds

    def roll_back(self, checkpoint: tuple[int, int, int]) -> None:
        """Forget the nodes that were added since the checkpoint, after a lowering gave up half-way."""
        count, names, self.seeds = checkpoint
        del self._nodes[count:]
        while len(self._names) > names:
            self.graph.buffers.pop(self._names.popitem()[0], None)
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
        self.graph.nodes = list(in_order_of_sizes(self._with_devices(node) for node in self._nodes))
        self.graph.elsewhere = frozenset(self.elsewhere)
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

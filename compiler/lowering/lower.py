"""A functional ATen graph becomes a graph of loops and library calls.

    sin = aten.sin(x)                        for x0 < 512: for r0 < 64:
    sum_1 = aten.sum(sin, [1])       ->          sum_1[x0] = reduce sum of sin[64*x0 + r0]

Every tensor operator becomes one node (a few become one node a step); nothing is fused and nothing is computed twice
here, both are the scheduler's choice. Views and constants become no node at all: their readers read through them; nor
does a call that repeats an earlier one.
No operator makes lowering fail: one without a lowering of ours is a library call of PyTorch's own.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.fx
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx.node import map_aggregate, map_arg
from torch.utils._pytree import tree_leaves

from compiler.devices import Device
from compiler.fx.notes import FIRST_SIZES
from compiler.ir.formulas import Real
from compiler.ir.nodes import GraphOutput, Layout, LoopGraph
from compiler.ir.size import Integer, Size, Symbol, Undecided, hint
from compiler.lowering import (  # noqa: F401
    bits,
    blocks,
    checks,
    creation,
    embeddings,
    index_put,
    indexing,
    late_sizes,
    library,
    logic,
    masks,
    matrix_vector,
    pointwise,
    pooling,
    powers,
    random,
    reductions,
    scans,
    scatter,
    scatter_reduce,
    searching,
    upsampling,
    views,
)
from compiler.lowering.aliases import is_view
from compiler.lowering.builder import Builder
from compiler.lowering.channels_last import ChannelsLast
from compiler.lowering.devices import device_of_graph, refuse_foreign_reads
from compiler.lowering.eager import EagerTensor, eager_tensors, first_sizes, symbol_in
from compiler.lowering.late_sizes import told_by
from compiler.lowering.outputs import Outputs
from compiler.lowering.pointwise import neg_view
from compiler.lowering.registry import lowering_of, operator_name
from compiler.lowering.removed import removed_nodes
from compiler.lowering.repeated import Repeats
from compiler.lowering.scalars import is_true, scalar, truth
from compiler.lowering.strides import with_eager_strides
from compiler.lowering.tree_calls import tree_call
from compiler.lowering.unsupported import (
    CALL_OUTSIDE,
    FIXED_INSTEAD,
    LoweringError,
    OpenSizesUnsupported,
    described,
    refuse_unknown_sizes,
    unsupported_at,
)
from compiler.lowering.values import SUPPORTED_DTYPES, CannotLower, TensorValue, constant, of_buffer

#: From this capability on, NVIDIA's GPUs add both half types in memory, up to 16 bytes by one operation.
ADDS_HALF_TYPES = 90
#: Where torch's own operators are: any other namespace is that of a library, or the snippet's.
_TORCH_NAMESPACES = frozenset(("aten", "prims", "prim"))


def lower(
    gm: torch.fx.GraphModule, channels_last: ChannelsLast | None = None, device: Device | None = None
) -> LoopGraph:
    """The loops of `gm`, whose nodes carry `meta["val"]` (fake tensors), and `meta["lines"]` maybe. Tensors lie as
    eager's do, but for what `channels_last` names. Programs of the `device` that decisions are made for may wait for
    those before them, and what adds half types in memory may do so; of none in particular they do not."""
    with first_sizes(gm.meta.get(FIRST_SIZES, {})):
        walk = _Walk(gm, channels_last)
        walk.build.looks_back = device is not None and device.kind == "cuda"
        walk.build.adds_half_types = device is not None and device.capability >= ADDS_HALF_TYPES
        return walk.run()


class _Walk:
    def __init__(self, gm: torch.fx.GraphModule, channels_last: ChannelsLast | None) -> None:
        self.gm, self.laid_out = gm, channels_last
        self.build = Builder(channels_last)
        self.values: dict[torch.fx.Node, Any] = {}
        self.repeats = Repeats()
        #: What eager mode's value of each node looks like.
        self.eager = {node: described(node) for node in gm.graph.nodes}
        self.outputs = Outputs(self.build, self.values, self.eager, self._visit)

    def run(self) -> LoopGraph:
        self.build.device = device_of_graph(self.eager)
        for node in self.gm.graph.nodes:
            earlier = self.repeats.earlier(node)
            if earlier is None:
                self._visit(node)
            else:
                self.values[node] = self.values[earlier]
        graph = self.build.finish()
        refuse_foreign_reads(graph)
        graph.removed = removed_nodes(self.gm.graph, self.values, self.repeats.of, graph)
        return graph

    def _visit(self, node: torch.fx.Node) -> None:
        self.build.node, self.build.eager = node, self.eager[node]
        self.values[node] = value = self._value_of(node)
        refuse_unknown_sizes(node, late_sizes.late_symbols(self.eager[node]) - self.build.known_sizes)
        self._remember_eager(value, self.eager[node])

    def _remember_eager(self, value: Any, fake: Any) -> None:
        if isinstance(value, TensorValue) and isinstance(fake, EagerTensor):
            self.build.eager_of.setdefault(id(value), fake)
        elif isinstance(value, list | tuple) and isinstance(fake, list | tuple):
            for item, item_fake in zip(value, fake, strict=False):
                self._remember_eager(item, item_fake)

    def _value_of(self, node: torch.fx.Node) -> Any:
        if node.op == "placeholder":
            return self._placeholder(node)
        if node.op == "get_attr":
            return self._attribute(node)
        if node.op == "output":
            return self._outputs(node)
        if node.op == "call_function":
            return self._call(node)
        raise LoweringError(f"{node.name}: a functional graph has no {node.op} nodes")

    def _placeholder(self, node: torch.fx.Node) -> Any:
        fake = self.eager[node]
        position = len(self.build.graph.inputs)
        if not isinstance(fake, EagerTensor):
            self.build.graph.inputs.append(None)
            if isinstance(fake, torch.SymFloat):
                return self._float_input(node, position)
            self._find_symbol(fake, position, "")
            return fake
        self.build.graph.inputs.append(node.name)
        for dim, (size, stride) in enumerate(zip(fake.shape, fake.stride(), strict=True)):
            self._find_symbol(size, position, f".shape[{dim}]")
            self._find_symbol(stride, position, f".stride({dim})")
        strides = fake.stride() if self.laid_out is None else self.laid_out.inputs.get(node.name, fake.stride())
        value = self.build.add_input(node.name, Layout(fake.shape, strides, fake.dtype))
        self.outputs.owners[node.name] = node
        if fake.is_negated:
            return neg_view(self.build, value)
        if self._is_elsewhere(fake):
            self.build.elsewhere.add(node.name)
        if fake.dim() == 0 and self._is_elsewhere(fake) and all(_is_arithmetic(user) for user in node.users):
            # Eager takes a CPU scalar beside GPU tensors; a kernel cannot read it there.
            return self.build.move(value, self.build.device)
        return value

    def _float_input(self, node: torch.fx.Node, position: int) -> Real:
        """A float that a caller gives: an argument, or what a forward graph hands to its backward graph."""
        symbol = Symbol(node.name, 0, None)
        self.build.graph.symbols[symbol] = position, ""
        return Real(node.name, (symbol,))

    def _find_symbol(self, size: Any, position: int, part: str) -> None:
        """Remember where a call's value of a symbol is found: in the input at `position`; a plain integer is best."""
        symbol: Symbol | None = symbol_in(size)
        if symbol is not None:
            self.build.known_sizes.add(symbol)
        if symbol is not None and (not part or symbol not in self.build.graph.symbols):
            self.build.graph.symbols[symbol] = position, part

    def _is_elsewhere(self, fake: EagerTensor) -> bool:
        return fake.device.type != self.build.device.type

    def _moved(self, value: Any) -> Any:
        """An argument that lies elsewhere as a copy on the graph's device."""
        is_elsewhere = isinstance(value, TensorValue) and self.build.lies_elsewhere(value)
        return self.build.move(value, self.build.device) if is_elsewhere else value

    def _attribute(self, node: torch.fx.Node) -> Any:
        value: Any = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach().resolve_neg()
        if value.numel() == 1 and value.dim() == 0 and not value.is_complex() and value.device.type == "cpu":
            return constant(value.item(), (), value.dtype)
        return self.build.add_constant(node.name, value)

    # --- operators

    def _call(self, node: torch.fx.Node) -> Any:
        if isinstance(self.eager[node], Size) or isinstance(node.meta.get("val"), torch.SymInt):
            return self._number(node)
        if isinstance(node.target, HigherOrderOperator) and node.target is not torch.ops.higher_order.with_effects:
            return tree_call(self.build, node, self.values)
        mapped: Any = map_arg((node.args, dict(node.kwargs)), self.values.__getitem__)
        args, kwargs = mapped
        self.build.arguments = tuple(leaf for leaf in tree_leaves([args, kwargs]) if isinstance(leaf, TensorValue))
        if node.target is operator.getitem:
            return args[0][args[1]]
        if node.target is torch.ops.higher_order.with_effects:
            return self._with_effect(node, args, kwargs)
        if node.target in library.OWN_CALLS:
            return library.OWN_CALLS[node.target](self.build, *args)
        if not isinstance(node.target, OpOverload):
            return self._python_call(node, args, kwargs)
        return self._operator_call(node, node.target, args, kwargs)

    def _python_call(self, node: torch.fx.Node, args: Any, kwargs: dict[str, Any]) -> Any:
        """A function of Python's own on what is known of sizes and numbers."""
        val = node.meta.get("val")
        if isinstance(val, torch.SymFloat | torch.SymBool):
            try:
                return (scalar if isinstance(val, torch.SymFloat) else truth)(node.target, args)
            except CannotLower as error:
                raise unsupported_at(node, str(error).capitalize(), FIXED_INSTEAD, OpenSizesUnsupported) from None
        if not self.build.arguments:
            return node.target(*args, **kwargs)  # type: ignore[operator]
        message = f"{getattr(node.target, '__name__', node.target)} is a Python function that a graph cannot hold"
        raise unsupported_at(node, message, CALL_OUTSIDE)

    def _operator_call(self, node: torch.fx.Node, target: OpOverload, args: Any, kwargs: dict[str, Any]) -> Any:
        """A node of loops where there is a lowering that covers the case, else a call of the library."""
        lowering = lowering_of(target)
        if lowering is None and target.namespace not in _TORCH_NAMESPACES:
            reason = f"{operator_name(target)} is an operator of its author's own and runs as it is."
            return self._fall_back(node, args, kwargs, reason)
        if told_by(self.eager[node], self.build.known_sizes):
            return self.build.extern(target, args, kwargs, is_fallback=False, reason=late_sizes.REASON)
        if lowering is None:
            reason = f"There is no lowering of ours for {operator_name(target)}."
            return self._fall_back(node, args, kwargs, reason)
        if any(map(self.build.lies_elsewhere, self.build.arguments)):
            if any(map(self._is_elsewhere, eager_tensors(self.eager[node]))):
                return self._fall_back(node, args, kwargs, "It computes with tensors of another device.")
            args, kwargs = map_aggregate((args, kwargs), self._moved)
        checkpoint = self.build.checkpoint()
        try:
            return self._checked(lowering(self.build, *args, **kwargs), self.eager[node])
        except Exception as error:  # a gap in a lowering must not end an exploration
            self.build.roll_back(checkpoint)
            viewed = self._by_eagers_strides(node, args[0]) if is_view(target) else None
            if viewed is not None:
                return viewed
            message = str(error) if isinstance(error, CannotLower) else f"{type(error).__name__}: {error}"
            reason = f"Our lowering of {operator_name(target)} does not cover this case: {message}."
            return self._fall_back(node, args, kwargs, reason)

    def _by_eagers_strides(self, node: torch.fx.Node, source: Any) -> TensorValue | None:
        """A view whose formula depends on sizes of a call in a way that cannot be told, by the strides that torch found
        for it, where what it views lies in memory as in eager. A copy would not do: whoever gets the view may be told
        its offset in an input's memory."""
        fake, seen = self.eager[node], self.outputs.eager_of(node.all_input_nodes[0])
        if not isinstance(source, TensorValue) or not isinstance(fake, EagerTensor) or seen is None:
            return None
        if source.buffer is None or fake.dtype != source.dtype or fake.dtype not in SUPPORTED_DTYPES or fake.is_negated:
            return None
        try:
            layout = source.layout()
        except Undecided:
            return None
        if layout is None or with_eager_strides(layout, seen).stride != seen.stride() or seen.is_negated:
            return None
        start = layout.offset + fake.storage_offset() - seen.storage_offset()
        return of_buffer(source.buffer, Layout(fake.shape, fake.stride(), fake.dtype, start))

    def _number(self, node: torch.fx.Node) -> Any:
        """A size, by the formula that torch has of it, or the number that its guards make of that; one that is read out
        of a tensor has none."""
        if node.target is late_sizes.NUMBER and told_by(self.eager[node], self.build.known_sizes):
            args = map_arg(node.args, self.values.__getitem__)
            self.build.extern(node.target, args, {}, is_fallback=False, reason=late_sizes.REASON_OF_NUMBER)
        return self.eager[node]

    def _with_effect(self, node: torch.fx.Node, args: Any, kwargs: dict[str, Any]) -> Any:
        """`token, results = with_effects(token, operator, ...)`: a call that is made for more than its results.

        Tokens only keep such calls in order, which the order of the nodes does here."""
        token, target, *arguments = args
        _, *results = self.eager[node]
        result = results[0] if len(results) == 1 else tuple(results)
        reason = f"{operator_name(target)} has an effect besides its results, so it stays a call."
        value = self.build.extern(target, arguments, kwargs, is_fallback=False, reason=reason, result=result)
        return (token, *value) if isinstance(value, tuple) else (token, value)

    def _checked(self, value: Any, fake: Any) -> Any:
        """The value, once it has been found to have eager's shapes and dtypes."""
        if isinstance(fake, EagerTensor):
            if not isinstance(value, TensorValue):
                raise CannotLower("it gives no tensor")
            if value.shape != fake.shape and _are_one(value.shape, fake.shape):
                value = replace(value, shape=fake.shape)
            if value.shape != fake.shape or value.dtype != fake.dtype:
                raise CannotLower(f"it gives {value.dtype}{list(value.shape)}, not {fake.dtype}{list(fake.shape)}")
            if value.dtype not in SUPPORTED_DTYPES and value.layout() is None:
                # No loop could ever bring it into memory for the library call that reads it.
                raise CannotLower(f"loops do not compute {value.dtype}")
        elif isinstance(fake, list | tuple):
            return tuple(self._checked(item, item_fake) for item, item_fake in zip(value, fake, strict=True))
        return value

    def _fall_back(self, node: torch.fx.Node, args: Any, kwargs: dict[str, Any], reason: str) -> Any:
        target = node.target
        assert isinstance(target, OpOverload)
        # AOTAutograd may leave a last `copy_` to an input that the graph changes; nothing reads the input after it.
        if target._schema.is_mutable and target is not torch.ops.aten.copy_.default:
            name = operator_name(target)
            message = f"{name} writes to its input, so the graph is not functional"
            raise unsupported_at(node, message, CALL_OUTSIDE)
        return self.build.extern(library.without_aliases(target), args, kwargs, is_fallback=True, reason=reason)

    # --- outputs

    def _outputs(self, node: torch.fx.Node) -> None:
        results = node.args[0]
        sequence = results if isinstance(results, list | tuple) else [results]
        self.outputs.note_saved(sequence)
        outputs, firsts = self.build.graph.outputs, dict[torch.fx.Node, int]()
        for position, result in enumerate(sequence):
            if not isinstance(result, torch.fx.Node) or not isinstance(self.values[result], TensorValue):
                outputs.append(GraphOutput(None, None, self._number_given(result)))
            elif result in firsts:
                outputs.append(replace(outputs[firsts[result]], repeats=firsts[result]))
            else:
                firsts[result] = position
                outputs.append(self.outputs.output(result))

    def _number_given(self, result: Any) -> Any:
        """A result that is no tensor, of the type that eager gives."""
        value = map_arg(result, self.values.__getitem__)
        is_truth = isinstance(result, torch.fx.Node) and isinstance(result.meta.get("val"), torch.SymBool)
        return is_true(value) if is_truth else value


def _are_one(ours: Sequence[Integer], eager: Sequence[Integer]) -> bool:
    """Whether the shapes are two ways to write one: a guard may make formulas equal that are not the same."""
    if len(ours) != len(eager):
        return False
    pairs = list(zip(ours, eager, strict=True))
    return all(a == b or (hint(a) == hint(b) and not (isinstance(a, int) and isinstance(b, int))) for a, b in pairs)


def _is_arithmetic(user: torch.fx.Node) -> bool:
    """Whether a scalar's reader wants its value, wherever it is, rather than to hand it on or move it."""
    return user.op == "call_function" and user.target is not torch.ops.aten._to_copy.default

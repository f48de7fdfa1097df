"""Operators that AOTAutograd takes apart, taken apart once for all calls whose inputs are alike.

    batch_norm(x: 32 x 64 x 56 x 56, ...)     traced: each of its 22 operators passes through Python's dispatch
    batch_norm(y: 32 x 64 x 56 x 56, ...)     the same 22 nodes, written down with the other inputs

What a decomposition does follows from what is known of its inputs, as they have no values: for equal sizes, strides,
dtypes and numbers it makes the same nodes. The layers of a model repeat each other. Of the 53 batch norms of a
ResNet-50 12 differ, and to take them apart was half of what AOTAutograd did. The nodes, their names and what is said of
each come out as if each had been traced, which `tests/capture/test_decomposed_once.py` holds.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    get_proxy_slot,
    track_tensor_tree,
)
from torch.utils._pytree import tree_flatten, tree_unflatten

Decomposition = Callable[..., Any]

#: Fewer nodes are traced about as fast.
LEAST_NODES = 3
#: What may stand beside tensors among the inputs: it tells nothing of itself but its value.
_PLAIN = (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None))


@dataclass(frozen=True)
class Written:
    """The nodes that a decomposition made, in order; those of its inputs; and which of the former its results are."""

    nodes: tuple[fx.Node, ...]
    inputs: tuple[fx.Node | None, ...]
    results: tuple[fx.Node, ...]
    structure: Any


#: What was made of an operator for such inputs; None where that cannot be written down again.
_Known = dict[Hashable, Written | None]


def decomposed_once(decompositions: Mapping[Any, Decomposition]) -> dict[Any, Decomposition]:
    """The decompositions, of which each is traced once for all inputs that are alike in one trace."""
    known: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()
    return {
        target: _once(target, function, known) if _may_repeat(target) else function
        for target, function in decompositions.items()
    }


def _may_repeat(target: Any) -> bool:
    """Whether it changes nothing, gives memory of its own, and the same for the same inputs."""
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    schema = target._schema
    return not schema.is_mutable and all(result.alias_info is None for result in schema.returns)


def _once(target: OpOverload, function: Decomposition, known: WeakKeyDictionary[Any, _Known]) -> Decomposition:
    @functools.wraps(function)
    def decompose(*args: Any, **kwargs: Any) -> Any:
        tracer = getattr(get_proxy_mode(), "tracer", None)
        if tracer is None:
            return function(*args, **kwargs)
        inputs, structure = tree_flatten((args, kwargs))
        nodes = tuple(_node_of(value, tracer) for value in inputs)
        of_inputs = _key(inputs, nodes)
        if of_inputs is None:
            return function(*args, **kwargs)
        of_trace = known.setdefault(tracer, {})
        key = target, structure, of_inputs
        written = of_trace.get(key)
        if written is not None:
            return _again(written, nodes, tracer)
        last = next(iter(reversed(tracer.graph.nodes)), None)
        made = function(*args, **kwargs)
        if last is not None and key not in of_trace:  # the first of all is traced twice, if it comes again
            memory = {_memory(value) for value in inputs if isinstance(value, torch.Tensor)}
            of_trace[key] = None if made is NotImplemented else _written(last, nodes, memory, made, tracer)
        return made

    return decompose


def _node_of(value: Any, tracer: Any) -> fx.Node | None:
    """The node that stands for a tensor in the trace; None for one that is a number, which may be asked for."""
    tracked = get_proxy_slot(value, tracer, None) if isinstance(value, torch.Tensor) else None
    is_number = any(getattr(of, "constant", None) is not None for of in (value, tracked))
    return None if is_number else getattr(getattr(tracked, "proxy", None), "node", None)


def _key(inputs: Sequence[Any], nodes: Sequence[fx.Node | None]) -> Hashable | None:
    """What a decomposition may ask of its inputs; None where that is more than a key tells."""
    found: list[Hashable] = []
    places: dict[fx.Node, int] = {}
    for value, node in zip(inputs, nodes, strict=True):
        if node is not None and type(value) is FakeTensor and value.layout == torch.strided:
            sizes = (*value.shape, *value.stride(), value.storage_offset())
            if not all(type(size) is int for size in sizes):
                return None
            flags = value.requires_grad, value.is_conj(), value.is_neg()
            place = places.setdefault(node, len(places))
            found.append((value.dim(), sizes, value.dtype, value.device, flags, place))
        elif type(value) in _PLAIN:
            found.append((type(value), repr(value)))  # 0.0 equals -0.0
        else:
            return None
    return tuple(found)


def _written(
    last: fx.Node, inputs: tuple[fx.Node | None, ...], memory_of_inputs: set[int], made: Any, tracer: Any
) -> Written | None:
    """What was traced since the `last` node before it; None where more than these nodes would be needed, or a result
    shares its memory."""
    nodes: list[fx.Node] = []
    while last.next.op != "root":
        last = last.next
        nodes.append(last)
    values, structure = tree_flatten(made)
    results = tuple(node for value in values if (node := _node_of(value, tracer)) is not None)
    known = {*inputs, *nodes}
    may_repeat = (
        len(nodes) >= LEAST_NODES
        and len(set(results)) == len(values)
        and set(results) <= set(nodes)
        and all(_is_whole(value) for value in values)
        and len({_memory(value) for value in values} - memory_of_inputs) == len(values)
        and all(_is_plain(node) and known.issuperset(node.all_input_nodes) for node in nodes)
    )
    return Written(tuple(nodes), inputs, results, structure) if may_repeat else None


def _memory(value: torch.Tensor) -> int:
    """What tells the memory of a tensor from all others while it lives."""
    return int(value.untyped_storage()._cdata)


def _is_whole(value: Any) -> bool:
    """Whether a tensor is all that there is in its memory, as it lies there, and nothing else is known of it."""
    if not _is_sized(value) or value.storage_offset() != 0 or value.requires_grad or value.is_conj() or value.is_neg():
        return False
    last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    elements = 0 if 0 in value.shape else 1 + last
    return bool(value.untyped_storage().nbytes() == elements * value.element_size())


def _is_plain(node: fx.Node) -> bool:
    """Whether it is an operator that changes nothing and gives tensors of known sizes, or a part of what one gives."""
    target, values = node.target, tree_flatten(node.meta.get("val"))[0]
    if node.op != "call_function" or not all(_is_sized(value) for value in values):
        return False
    if isinstance(target, OpOverload):
        return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags
    return target is operator.getitem


def _is_sized(value: Any) -> bool:
    if type(value) is not FakeTensor or value.layout != torch.strided:
        return False
    return all(type(size) is int for size in (*value.shape, *value.stride(), value.storage_offset()))


def _again(written: Written, inputs: Sequence[fx.Node | None], tracer: Any) -> Any:
    """The same nodes for other inputs."""
    pairs = zip(written.inputs, inputs, strict=True)
    proxies = {there: tracer.proxy(here) for there, here in pairs if there is not None}
    for node in written.nodes:
        args, kwargs = (fx.node.map_arg(part, proxies.__getitem__) for part in (node.args, node.kwargs))
        # As ProxyTorchDispatchMode names what it traces.
        packet = getattr(node.target, "overloadpacket", None)
        name = None if packet is None else tracer.graph._target_to_str(packet.__name__)
        proxy = proxies[node] = tracer.create_proxy("call_function", node.target, args, kwargs, name=name)
        # What is known of a node's value is not written to; not all nodes have both.
        proxy.node.meta |= {known: node.meta[known] for known in ("val", "tensor_meta") if known in node.meta}
    results = [_like(node.meta["val"]) for node in written.results]
    for node, value in zip(written.results, results, strict=True):
        track_tensor_tree(value, proxies[node], constant=None, tracer=tracer)
    return tree_unflatten(results, written.structure)


def _like(value: FakeTensor) -> Any:
    """Another tensor without values, of the same sizes, that the trace knows nothing of."""
    with disable_proxy_modes_tracing(), value.fake_mode:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)

"""Replay the nodes that a traced call produced for later calls whose inputs are alike.

What an operator does in a trace follows from what is known of its inputs, as they have no values: for equal sizes,
strides, dtypes and numbers it makes the same nodes. The nodes, their names and what is said of each come out as if each
call had been traced. Who keeps them says what of its calls may be kept.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.fx.experimental.proxy_tensor import get_proxy_slot, track_tensor_tree
from torch.utils._pytree import tree_flatten

#: What may stand beside tensors among the inputs: it tells nothing of itself but its value.
_PLAIN = (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None), type(...))


@dataclass(frozen=True)
class Result:
    """A node that gives a result, and the place of the input in whose memory that lies; None where it has its own."""

    node: fx.Node
    shares: int | None


@dataclass(frozen=True)
class Written:
    """The nodes that a call made, in order; those of its inputs; and its results. One that is a number is the input at
    that place."""

    nodes: tuple[fx.Node, ...]
    inputs: tuple[fx.Node | None, ...]
    results: tuple[Result | int, ...]
    structure: Any


def node_of(value: Any, tracer: Any) -> fx.Node | None:
    """The node that stands for a tensor in the trace; None for one that is a number, which may be asked for."""
    tracked = get_proxy_slot(value, tracer, None) if isinstance(value, torch.Tensor) else None
    is_number = any(getattr(of, "constant", None) is not None for of in (value, tracked))
    return None if is_number else getattr(getattr(tracked, "proxy", None), "node", None)


def is_of_torch(target: Any) -> bool:
    """Whether it is known to do the same whenever its inputs are alike: an operator, function or method of torch's or
    of Python's, none that somebody has added, and no program of its own."""
    if isinstance(target, OpOverload | OpOverloadPacket):
        overload = target if isinstance(target, OpOverload) else getattr(target, target.overloads()[0])
        return overload.namespace in ("aten", "prims", "prim")
    if isinstance(target, str | HigherOrderOperator):
        return isinstance(target, str)
    return (getattr(target, "__module__", None) or "").partition(".")[0] in ("torch", "_operator")


def alike(inputs: Sequence[Any], nodes: Sequence[Hashable | None]) -> Hashable | None:
    """What a call may ask of its inputs, as a key; None where that is more than a key tells. `nodes` tell one tensor
    from another, and have None for what may be asked for its number."""
    found: list[Hashable] = []
    places: dict[Hashable, int] = {}
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


def last_node(tracer: Any) -> fx.Node:
    """The last node of a trace so far; the root where there is none."""
    last: fx.Node = tracer.graph._root.prev
    return last


def written_since(
    last: fx.Node, inputs: Sequence[Any], nodes_of_inputs: Sequence[fx.Node | None], made: Any, tracer: Any
) -> Written | None:
    """What was traced since the `last` node before it; None where more than these nodes would be needed, or a result is
    known to be more than a tensor of its sizes."""
    nodes: list[fx.Node] = []
    while last.next.op != "root":
        last = last.next
        nodes.append(last)
    values, structure = tree_flatten(made)
    results = [_result(value, inputs, nodes_of_inputs, tracer) for value in values]
    known = {*nodes_of_inputs, *nodes}
    given = [result.node for result in results if isinstance(result, Result)]
    memory = [memory_of(value) for value, result in zip(values, results, strict=True) if _is_alone(result)]
    may_repeat = (
        None not in results
        and len(set(given)) == len(given)
        and set(given) <= set(nodes)
        and len(set(memory)) == len(memory)
        and all(_is_plain(node) and known.issuperset(node.all_input_nodes) for node in nodes)
    )
    if not may_repeat:
        return None
    return Written(tuple(nodes), tuple(nodes_of_inputs), tuple(results), structure)  # type: ignore[arg-type]


def _result(value: Any, inputs: Sequence[Any], nodes: Sequence[fx.Node | None], tracer: Any) -> Result | int | None:
    node = node_of(value, tracer)
    if node is None:
        return None
    if node in nodes:
        place = nodes.index(node)
        return place if inputs[place] is value else None
    if not is_sized(value) or value.requires_grad or value.is_conj() or value.is_neg():
        return None
    memory = memory_of(value)
    for place, given in enumerate(inputs):
        if isinstance(given, torch.Tensor) and memory_of(given) == memory:
            return Result(node, place)
    return Result(node, None) if is_whole(value) else None


def _is_alone(result: Result | int | None) -> bool:
    return isinstance(result, Result) and result.shares is None


def memory_of(value: torch.Tensor) -> int:
    """What tells the memory of a tensor from all others while it lives."""
    return int(value.untyped_storage()._cdata)


def is_whole(value: Any) -> bool:
    """Whether a tensor is all that there is in its memory, as it lies there."""
    if value.storage_offset() != 0:
        return False
    last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    elements = 0 if 0 in value.shape else 1 + last
    return bool(value.untyped_storage().nbytes() == elements * value.element_size())


def _is_plain(node: fx.Node) -> bool:
    """Whether it is an operator that changes nothing and gives tensors of known sizes, or a part of what one gives."""
    target, values = node.target, tree_flatten(node.meta.get("val"))[0]
    if node.op != "call_function" or not all(is_sized(value) for value in values):
        return False
    if isinstance(target, OpOverload):
        return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags
    return target is operator.getitem


def is_sized(value: Any) -> bool:
    if type(value) is not FakeTensor or value.layout != torch.strided:
        return False
    return all(type(size) is int for size in (*value.shape, *value.stride(), value.storage_offset()))


def write_again(written: Written, inputs: Sequence[Any], nodes: Sequence[fx.Node | None], tracer: Any) -> list[Any]:
    """The same nodes for other inputs; their results, of which the trace knows."""
    pairs = zip(written.inputs, nodes, strict=True)
    proxies = {there: tracer.proxy(here) for there, here in pairs if there is not None}
    for node in written.nodes:
        args, kwargs = (fx.node.map_arg(part, proxies.__getitem__) for part in (node.args, node.kwargs))
        # As ProxyTorchDispatchMode names what it traces.
        packet = getattr(node.target, "overloadpacket", None)
        name = None if packet is None else tracer.graph._target_to_str(packet.__name__)
        proxy = proxies[node] = tracer.create_proxy("call_function", node.target, args, kwargs, name=name)
        # What is known of a node's value is not written to; not all nodes have all.
        proxy.node.meta |= {known: node.meta[known] for known in _OF_VALUE if known in node.meta}
    results: list[Any] = []
    for result in written.results:
        if isinstance(result, int):
            results.append(inputs[result])
            continue
        value = like(result.node.meta["val"], None if result.shares is None else inputs[result.shares])
        # Without what it tells the node of its value, which that has.
        track_tensor_tree(value, proxies[result.node], constant=None, tracer=tracer)
        results.append(value)
    return results


#: In the `meta` of a node.
_OF_VALUE = ("val", "tensor_meta", "original_aten")


def like(value: FakeTensor, shares: FakeTensor | None) -> FakeTensor:
    """Another tensor without values, of the same sizes, that the trace knows nothing of, in the memory of the tensor
    that it `shares`, if any."""
    mode = value.fake_mode
    with in_kernel_invocation_manager(mode):
        alone = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        if shares is not None:
            alone.set_(shares.untyped_storage(), value.storage_offset(), value.shape, value.stride())  # type: ignore[arg-type]
    return FakeTensor(mode, alone, value.device)

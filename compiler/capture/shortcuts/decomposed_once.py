"""Decompose an operator once for all calls whose inputs are alike.

    batch_norm(x: 32 x 64 x 56 x 56, ...)     traced: each of its 22 operators passes through Python's dispatch
    batch_norm(y: 32 x 64 x 56 x 56, ...)     the same 22 nodes, written down with the other inputs

The layers of a model repeat each other. Of the 53 batch norms of a ResNet-50 12 differ, and to take them apart was half
of what AOTAutograd did. The nodes, their names and what is said of each come out as if each had been traced, which
`tests/capture/test_decomposed_once.py` holds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._pytree import tree_flatten, tree_unflatten

from compiler.capture.shortcuts.written_again import Written, alike, last_node, node_of, write_again, written_since

Decomposition = Callable[..., Any]

#: Fewer nodes are traced about as fast.
LEAST_NODES = 3
#: What was made of an operator for such inputs; None where that cannot be written down again.
_Known = dict[Hashable, Written | None]


#: What was made within a trace, for as long as that lasts.
_known: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()


def decomposed_once(decompositions: Mapping[Any, Decomposition]) -> dict[Any, Decomposition]:
    """The decompositions, of which each is traced once for all inputs that are alike in one trace.

    A thousand operators are looked at, so that the table is kept for the next compilation, which asks for the same."""
    global _last
    asked = list(decompositions), list(decompositions.values())
    if asked != _last[0]:
        _last = asked, {
            target: _once(target, function) if _may_repeat(target) else function
            for target, function in decompositions.items()
        }  # fmt: skip
    return dict(_last[1])


#: Operators and functions as they were asked for last, and what was made of them.
_last: tuple[tuple[list[Any], list[Decomposition]], dict[Any, Decomposition]] = ([], []), {}


def _may_repeat(target: Any) -> bool:
    """Whether it changes nothing, gives memory of its own, and the same for the same inputs."""
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    schema = target._schema
    return not schema.is_mutable and all(result.alias_info is None for result in schema.returns)


def _once(target: OpOverload, function: Decomposition) -> Decomposition:
    @functools.wraps(function)
    def decompose(*args: Any, **kwargs: Any) -> Any:
        tracer = getattr(get_proxy_mode(), "tracer", None)
        if tracer is None:
            return function(*args, **kwargs)
        inputs, structure = tree_flatten((args, kwargs))
        nodes = tuple(node_of(value, tracer) for value in inputs)
        of_inputs = alike(inputs, nodes)
        if of_inputs is None:
            return function(*args, **kwargs)
        of_trace = _known.setdefault(tracer, {})
        key = function, structure, of_inputs
        written = of_trace.get(key)
        if written is not None:
            return tree_unflatten(write_again(written, inputs, nodes, tracer), written.structure)
        last = last_node(tracer)
        made = function(*args, **kwargs)
        if key not in of_trace:
            found = None if made is NotImplemented else written_since(last, inputs, nodes, made, tracer)
            of_trace[key] = None if found is None or len(found.nodes) < LEAST_NODES or _shares(found) else found
        return made

    return decompose


def _shares(written: Written) -> bool:
    return any(isinstance(result, int) or result.shares is not None for result in written.results)

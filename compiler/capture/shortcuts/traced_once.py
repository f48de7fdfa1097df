"""Trace a graph once instead of twice where it mutates nothing and needs no gradient.

AOTAutograd runs a graph to learn what it changes and gives, and again to trace it. Here the first run is replaced by
tensors like those that Dynamo says the graph gives, of memory of their own.

That holds only if no call changes a tensor, and no result is a view of an input or of another result. A graph that is
seen to write anywhere is left alone. The run that traces checks the rest at its end. If it does not hold, `Unlike` is
raised, and AOTAutograd begins again with both runs. The graphs are those of AOTAutograd by itself, as
`tests/capture/test_traced_once.py` checks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx
from torch._functorch._aot_autograd import graph_capture_wrappers
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.fx.experimental.symbolic_shapes import PropagateUnbackedSymInts
from torch.utils._pytree import tree_leaves

from compiler.capture.autograd.repeated_writes import is_in_place


class Unlike(Exception):
    """A graph changes a tensor, or gives something else than Dynamo said it would."""


def may_be_traced_once(graph: fx.GraphModule) -> bool:
    """Whether it is worth trying: nothing that is there to be seen changes a tensor, is a program of its own, or takes
    a gradient; and the graph has no tensors of its own, as parameters of an optimiser are: AOTAutograd puts those into
    the graph, so that the run is not given what it may change."""
    for node in graph.graph.nodes:
        if node.op in ("get_attr", "call_module") or isinstance(node.target, HigherOrderOperator) or is_in_place(node):
            return False
        takes_gradient = torch.is_grad_enabled() and node.op != "placeholder"
        for value in _tensors(node):
            if not isinstance(value, FakeTensor) or (takes_gradient and value.requires_grad):
                return False
    return True


def _tensors(node: fx.Node) -> list[Tensor]:
    return [value for value in tree_leaves(_example(node)) if isinstance(value, Tensor)]


@contextlib.contextmanager
def traced_once() -> Iterator[None]:
    """Within, AOTAutograd runs graphs that way."""
    with mock.patch.object(graph_capture_wrappers, "PropagateUnbackedSymInts", partial(_Once, expected=[])):
        yield


class _Once(PropagateUnbackedSymInts):
    """One run. `expected` has what the run before it gave, which learnt what the graph changes, if that was made up."""

    def __init__(self, graph: fx.GraphModule, expected: list[list[Any]]) -> None:
        super().__init__(graph)
        self._expected = expected

    def run(self, *args: Any) -> Any:  # type: ignore[override]
        if get_proxy_mode() is None:
            made_up = _like_the_outputs(self.module.graph)  # type: ignore[arg-type]
            self._expected[:] = [] if made_up is None else [made_up]
            return super().run(*args) if made_up is None else made_up
        changes = _changes(args)
        outputs = super().run(*args)
        if self._expected and (
            _functional_mode()._tokens or changes != _changes(args) or not _are_alike(self._expected[0], outputs, args)
        ):
            raise Unlike
        return outputs


def _traced(value: Any) -> Any:
    """The tensor that the trace knows, of one that sees what changes it."""
    return torch._from_functional_tensor(value.elem) if type(value) is FunctionalTensor else value


def _functional_mode() -> Any:
    """What has tensors see their changes, and calls follow each other by tokens where one may end the program."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FUNCTIONAL)


def _changes(values: Sequence[Any]) -> list[int | None]:
    """How often the memory of each tensor was written to."""
    return [
        torch._functionalize_mutation_counter(value.elem) if type(value) is FunctionalTensor else None
        for value in values
    ]


def _like_the_outputs(graph: fx.Graph) -> list[Any] | None:
    """Tensors like the graph's outputs; None where one shares memory with an input or with another, or is not known."""
    outputs = graph.output_node().args[0]
    if not isinstance(outputs, tuple | list):
        return None
    inputs = map(_example, graph.find_nodes(op="placeholder"))
    taken = {_memory(value) for value in inputs if isinstance(value, Tensor)}
    made: list[Any] = []
    for output in outputs:
        value = _example(output) if isinstance(output, fx.Node) else output
        if value is None or type(value) is int:
            made.append(value)
            continue
        if type(value) is not FakeTensor or not _is_simple(value) or _memory(value) in taken:
            return None
        taken.add(_memory(value))
        made.append(torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device))
    return made


def _example(node: fx.Node) -> Any:
    return node.meta.get("example_value", NotImplemented)


def _memory(value: Any) -> int:
    return int(value.untyped_storage()._cdata) if value.layout == torch.strided else id(value)


def _is_simple(value: Tensor) -> bool:
    sizes = (*value.shape, *value.stride(), value.storage_offset())
    is_plain = value.layout == torch.strided and not (value.requires_grad or value.is_conj() or value.is_neg())
    return is_plain and all(type(size) is int for size in sizes) and value.storage_offset() == 0


def _are_alike(expected: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Whether the graph gives what was expected: tensors of the same sizes, each of memory of its own."""
    if len(expected) != len(outputs):
        return False
    taken = {_memory(_traced(value)) for value in inputs if isinstance(value, Tensor)}
    for one, other in zip(expected, outputs, strict=True):
        if not isinstance(one, Tensor):
            if type(one) is not type(other) or one != other:  # of a number that is not known nothing is asked
                return False
            continue
        if type(other) is not FunctionalTensor or not all(
            type(size) is int for size in (*other.shape, *other.stride())
        ):
            return False
        if _told(one) != _told(other) or _memory(_traced(other)) in taken:
            return False
        taken.add(_memory(_traced(other)))
    return True


def _told(value: Tensor) -> tuple[Any, ...]:
    return value.shape, value.stride(), value.storage_offset(), value.dtype, value.device, value.requires_grad

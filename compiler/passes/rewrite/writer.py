"""Writing calls into Dynamo's graph, each with the fake tensor that it gives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from compiler.passes.rewrite.calls import ATTENTION, ATTENTION_PARAMETERS, argument, tensor_of
from compiler.passes.rewrite.reasons import NotLegalError

#: What the names of torch's fused kernels of attention start with.
FUSED = "_scaled_dot_product_"


class Writer:
    """Writes before one node of a graph. `stack_trace` is what every call written has, so that its lines are known."""

    def __init__(self, graph: Graph, before: Node, stack_trace: str) -> None:
        self._graph, self._before, self._stack = graph, before, stack_trace
        self._written: list[Node] = []
        self.operators: set[str] = set()

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """A call of a function, or of the method with that name. Raises what the call raises on fake tensors."""
        with self._graph.inserting_before(self._before):
            kind = "call_method" if isinstance(target, str) else "call_function"
            node = self._graph.create_node(kind, target, args, kwargs)
        self._written.append(node)
        node.meta = {**self._before.meta, "stack_trace": self._stack}
        node.meta["example_value"] = self._evaluate(target, args, kwargs)
        return node

    def undo(self) -> None:
        """Take back everything that was written."""
        for node in reversed(self._written):
            self._graph.erase_node(node)
        self._written.clear()

    def fused(self) -> frozenset[str]:
        """Which fused kernels of attention the calls written come to."""
        return frozenset(name for name in self.operators if name.startswith(FUSED))

    def _evaluate(self, target: Any, args: Any, kwargs: Any) -> Any:
        values, named = torch.fx.node.map_arg((args, kwargs), tensor_of)
        with _Operators(self.operators):
            return evaluate(target, values, named)


def evaluate(target: Any, args: Any, kwargs: Any) -> Any:
    """What a call gives on fake tensors. Raises what it raises."""
    mode = next(getattr(value, "fake_mode", None) for value in tree_leaves(args) if isinstance(value, torch.Tensor))
    with mode or contextlib.nullcontext(), torch.enable_grad():
        return getattr(args[0], target)(*args[1:], **kwargs) if isinstance(target, str) else target(*args, **kwargs)


class _Operators(TorchDispatchMode):
    """Remembers the ATen operators that a call comes to."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self._names = names

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def undone_on_error(writer: Writer) -> Iterator[None]:
    """Leave the graph as it was where something within fails."""
    try:
        yield
    except Exception:
        writer.undo()
        raise


def attention_settings(node: Node) -> dict[str, Any]:
    """What a call of torch's attention is given, by name, and not None."""
    given = {name: argument(node, position, name) for position, name in enumerate(ATTENTION_PARAMETERS)}
    return {name: value for name, value in {**given, **node.kwargs}.items() if value is not None}


def call_attention(settings: dict[str, Any], writer: Writer) -> Node:
    """Write such a call. Raises NotLegalError where torch takes none like it."""
    tensors, others = ATTENTION_PARAMETERS[:3], dict(settings)
    try:
        return writer.call(ATTENTION, *(others.pop(name) for name in tensors), **others)
    except (RuntimeError, TypeError, ValueError) as error:
        raise NotLegalError("kernel.none", str(error).splitlines()[0]) from error

"""Operators that take functions: `torch.cond`, `while_loop`, `map`, `scan`, `flex_attention` and their like.

    z = cond(flag, true_graph_0, false_graph_0, (y, w))

Each function is a graph of its own, held by the graph that calls it. Which of them runs, or how often, is known only
when the call is made, so the call stays one: PyTorch runs the functions operator by operator, and what stands before
and after it is compiled. Nothing can be fused into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._ops import HigherOrderOperator

from compiler.lowering.builder import Builder
from compiler.lowering.tree_calls import TreeCall, tree_call

_STEPS = "how often its functions run is known only when it is called"
_SCORES = "PyTorch computes it operator by operator, with all scores in memory"

#: How users know the operators, and why each is one call.
_KNOWN = {
    "cond": ("torch.cond", "which of its two functions runs is known only when it is called"),
    "while_loop": ("while_loop", _STEPS),
    "while_loop_stack_output": ("while_loop", _STEPS),
    "map_impl": ("map", "its function runs once for each slice"),
    "scan": ("scan", "its function runs once for each slice, after the one before"),
    "associative_scan": ("associative_scan", "its function runs once for each step of the scan"),
    "flex_attention": ("flex_attention", _SCORES),
    "flex_attention_backward": ("the gradient of flex_attention", _SCORES),
}


class SubgraphCall(TreeCall):
    """The call of one, whose results own their memory."""

    def __str__(self) -> str:
        name = self.target.name()
        return _KNOWN[name][0] if name in _KNOWN else str(name)

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        return tuple(_owning(super().__call__(*given), given))


def _owning(results: Iterable[Any], given: Iterable[Any]) -> Iterator[Any]:
    """The results, copied where a function gives back what it was given: the plan of memory goes by who owns it."""
    known = {value.untyped_storage().data_ptr() for value in given if isinstance(value, torch.Tensor)}
    for result in results:
        if not isinstance(result, torch.Tensor) or result.numel() == 0:
            yield result
            continue
        memory = result.untyped_storage().data_ptr()
        yield result.clone() if memory in known else result
        known.add(memory)


def takes_functions(target: Any) -> bool:
    """Whether a call is of an operator beyond ATen, which PyTorch runs by rules of its own."""
    return isinstance(target, HigherOrderOperator)


def subgraph_call(build: Builder, node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> Any:
    """The library call for a node; its value has the structure that the operator gives."""
    assert isinstance(node.target, HigherOrderOperator)
    known = _KNOWN.get(node.target.name())
    why = "PyTorch runs it by rules of its own" if known is None else known[1]
    reason = f"{{call}} is a library call: {why}. The code before and after it is compiled."
    return tree_call(build, node, values, SubgraphCall, reason)

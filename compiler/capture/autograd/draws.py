"""Random operators that the backward graph draws again. AOTAutograd leaves them without a value to go by.

Its partitioner wraps them after tracing (see `compiler/lowering/tree_calls.py`), so the wrapped nodes have no
`meta["val"]`, which every other node has.
"""

from __future__ import annotations

import operator
from contextlib import AbstractContextManager
from typing import Any

import torch

from compiler.fx.fake_values import fake_mode_of, hint_of

KEEPING = torch.ops.higher_order.run_and_save_rng_state
REPLAYING = torch.ops.higher_order.run_with_rng_state


def restore_values(graph: torch.fx.GraphModule) -> None:
    """Give every wrapped random operator, and what is taken out of its result, the fake value of the operator."""
    for node in graph.graph.nodes:
        if node.target is KEEPING:
            for user in node.users:
                _fix_size(user)
        elif node.target is REPLAYING:
            _fix_size(node.args[0])
        if node.target in (KEEPING, REPLAYING) and "val" not in node.meta:
            _restore(node)


def _fix_size(state: torch.fx.Node) -> None:
    """A generator's state has one size, whatever sizes a call has; traced as a tensor like any, it has a symbol."""
    value = state.meta.get("val")
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.dim() == 1:
        with _fake_mode(state.graph):
            state.meta["val"] = torch.empty(hint_of(value.shape[0]), dtype=torch.uint8, device=value.device)


def _restore(node: torch.fx.Node) -> None:
    position = 0 if node.target is KEEPING else 1
    target: Any = node.args[position]
    arguments, keywords = torch.fx.map_arg((node.args[position + 1 :], node.kwargs), lambda read: read.meta["val"])
    with _fake_mode(node.graph):
        drawn = target(*arguments, **keywords)
    if node.target is REPLAYING:
        node.meta["val"] = drawn
        return
    taken = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    state = taken[0].meta["val"] if 0 in taken else None
    node.meta["val"] = (state, drawn)
    if 1 in taken:
        taken[1].meta.setdefault("val", drawn)


def _fake_mode(graph: torch.fx.Graph) -> AbstractContextManager[Any]:
    return fake_mode_of(node.meta.get("val") for node in graph.nodes)

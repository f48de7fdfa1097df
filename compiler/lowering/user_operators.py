"""Operators and kernels of the user that write to their arguments.

A graph is functional, so AOTAutograd wraps a `torch.library.custom_op` with `mutates_args` in `auto_functionalized`,
and a Triton kernel in `triton_kernel_wrapper_functional`: a call that copies what is written to, makes the user's call
on the copies and returns them. It stays such a call, as it is; nothing can be fused into it.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.lowering.builder import Builder
from compiler.lowering.registry import operator_name
from compiler.lowering.tree_calls import TreeCall, tree_call
from compiler.lowering.user_kernels import function_of

_KINDS = ("auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional")


class UserCall(TreeCall):
    def __str__(self) -> str:
        operator = next((leaf for leaf in self.leaves if isinstance(leaf, torch._ops.OpOverload)), None)
        return operator_name(operator) if operator is not None else str(function_of(self).__name__)


def writes_to_arguments(target: Any) -> bool:
    """Whether a call is the functional form of one of the user's that writes to its arguments."""
    return isinstance(target, torch._ops.HigherOrderOperator) and target.name() in _KINDS


def user_call(build: Builder, node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> Any:
    """The library call for a node; its value has the structure that the wrapper gives (a tuple, or a dictionary)."""
    reason = "{call} writes to its arguments and runs as it is, on copies of them."
    return tree_call(build, node, values, UserCall, reason)

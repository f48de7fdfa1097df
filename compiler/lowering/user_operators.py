"""Operators and kernels of the user that write to their arguments.

A graph is functional, so AOTAutograd wraps a `torch.library.custom_op` with `mutates_args` in `auto_functionalized`,
and a Triton kernel in `triton_kernel_wrapper_functional`: a call that copies what is written to, makes the user's call
on the copies and returns them. It stays such a call, as it is; nothing can be fused into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from compiler.ir.size import Size
from compiler.lowering.builder import Builder
from compiler.lowering.eager import describe
from compiler.lowering.registry import operator_name
from compiler.lowering.values import TensorValue

_KINDS = ("auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional")


@dataclass(frozen=True, eq=False)
class UserCall:
    """A call with holes in `leaves` where tensors and open sizes go; its results are a flat tuple."""

    node: str
    wrapper: Any
    leaves: tuple[Any, ...]
    holes: tuple[int, ...]
    structure: TreeSpec

    @property
    def __name__(self) -> str:
        return f"{self} at {self.node}"

    def __str__(self) -> str:
        operator = next((leaf for leaf in self.leaves if isinstance(leaf, torch._ops.OpOverload)), None)
        return operator_name(operator) if operator is not None else "a Triton kernel of the snippet"

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        leaves = list(self.leaves)
        for place, value in zip(self.holes, given, strict=True):
            leaves[place] = value
        args, kwargs = tree_unflatten(leaves, self.structure)
        return tuple(tree_flatten(self.wrapper(*args, **kwargs))[0])


def writes_to_arguments(target: Any) -> bool:
    """Whether a call is the functional form of one of the user's that writes to its arguments."""
    return isinstance(target, torch._ops.HigherOrderOperator) and target.name() in _KINDS


def user_call(build: Builder, node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> Any:
    """The library call for a node; its value has the structure that the wrapper gives (a tuple, or a dictionary)."""
    arguments = torch.fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
    leaves, structure = tree_flatten(arguments)
    holes = tuple(place for place, leaf in enumerate(leaves) if isinstance(leaf, TensorValue | Size))
    kept = tuple(None if place in holes else leaf for place, leaf in enumerate(leaves))
    target = UserCall(node.name, node.target, kept, holes, structure)
    results, shape_of_results = tree_flatten(node.meta["val"])
    reason = f"{target} writes to its arguments and runs as it is, on copies of them."
    described = tuple(describe(result) for result in results)
    given = [leaves[place] for place in holes]
    return tree_unflatten(
        build.extern(target, given, {}, is_fallback=False, reason=reason, result=described), shape_of_results
    )

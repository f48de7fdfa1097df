"""Library calls of what takes its tensors inside other structures: beside functions, in mappings, in tuples of tuples.

A library call of the loop IR takes tensors and numbers one beside the other, so such a call keeps its arguments as a
tree with holes where tensors and open sizes go, and gives its results flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from compiler.ir.formulas import Real
from compiler.ir.size import Size
from compiler.lowering.builder import Builder
from compiler.lowering.eager import describe
from compiler.lowering.values import TensorValue


@dataclass(frozen=True, eq=False)
class TreeCall:
    """A call of `target`, made for the FX node of that name, with holes in `leaves`; its results are a flat tuple."""

    node: str
    target: Any
    leaves: tuple[Any, ...]
    holes: tuple[int, ...]
    structure: TreeSpec

    @property
    def __name__(self) -> str:
        return f"{self} at {self.node}"

    def filled(self, given: Sequence[Any]) -> list[Any]:
        """The leaves with what goes into the holes."""
        leaves = list(self.leaves)
        for place, value in zip(self.holes, given, strict=True):
            leaves[place] = value
        return leaves

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        args, kwargs = tree_unflatten(self.filled(given), self.structure)
        return tuple(tree_flatten(self.target(*args, **kwargs))[0])


def tree_call(
    build: Builder, node: torch.fx.Node, values: dict[torch.fx.Node, Any], kind: type[TreeCall], reason: str
) -> Any:
    """The library call for a node, whose value has the structure that the target gives (a tuple, or a dictionary).
    `reason` may name the `{call}`."""
    arguments = torch.fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
    leaves, structure = tree_flatten(arguments)
    holes = tuple(place for place, leaf in enumerate(leaves) if isinstance(leaf, TensorValue | Size | Real))
    kept = tuple(None if place in holes else leaf for place, leaf in enumerate(leaves))
    target = kind(node.name, node.target, kept, holes, structure)
    results, shape_of_results = tree_flatten(node.meta["val"])
    described = tuple(describe(result) for result in results)
    given = [leaves[place] for place in holes]
    text = reason.format(call=target)
    value = build.extern(target, given, {}, is_fallback=False, reason=text, result=described)
    return tree_unflatten(value, shape_of_results)

"""Kernels for the sizes of one call, where none can be made for every size.

Dynamo makes its guards from what was asked of the symbols until the backend is done, so a backend may still fix them:
another size is then another compilation, as with `torch.compile(dynamic=False)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols


def fix_sizes(graph: torch.fx.GraphModule) -> bool:
    """Have every open size of the graph's inputs be the number that it is in the call under way, by a guard.

    False where there is none; a size that only an operator of the graph tells stays open."""
    found = [node.meta.get("val") for node in graph.graph.find_nodes(op="placeholder")]
    open_sizes = [size for value in found for size in _sizes_in(value) if not free_unbacked_symbols(size)]
    for size in open_sizes:
        int(size)
    return bool(open_sizes)


def _sizes_in(value: Any) -> Iterator[torch.SymInt]:
    if isinstance(value, torch.Tensor):
        numbers: tuple[Any, ...] = (*value.shape, *(value.stride() if value.layout == torch.strided else ()))
    else:
        numbers = (value,)
    return (number for number in numbers if isinstance(number, torch.SymInt))

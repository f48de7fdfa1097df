"""Data-dependent sizes: of `nonzero`, of a mask as an index, of `.item()`.

    i = aten.nonzero(x)             i = library call;  u0 = i.shape[0]
    y = aten.index(x, [i])    ->    for x0 < u0:  y[x0] = x[i[x0]]

The operator is a library call, and tells the size once it has run. From there on it is a size like any other: an
argument of kernels. What comes later in the program waits for that call, whether it reads a tensor of it or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from compiler.ir.nodes import Node
from compiler.ir.size import Size, Symbol, symbols_of
from compiler.lowering.eager import EagerTensor, symbol_in

Told = tuple[tuple[Symbol, int, str], ...]

REASON = "How many elements it gives is known only when it has run, so it is a library call."
NUMBER = torch.ops.aten._local_scalar_dense.default
REASON_OF_NUMBER = "A number is read out of a tensor, for which the host waits; sizes depend on it."


def late_symbols(eager: Any) -> set[Symbol]:
    """The late sizes in what eager's value of a node looks like."""
    if isinstance(eager, EagerTensor):
        numbers: Iterable[Any] = (*eager.shape, *eager.stride(), eager.storage_offset())
        sizes = [number for number in numbers if isinstance(number, Size)]
        return {symbol for size in sizes for symbol in symbols_of(size) if symbol.is_late}
    if isinstance(eager, list | tuple):
        return set().union(*map(late_symbols, eager))
    return {symbol for symbol in symbols_of(eager) if symbol.is_late}


def told_by(eager: Any, known: set[Symbol]) -> Told:
    """The late sizes that a call tells which were not known before it, and where in its results each is found."""
    results = eager if isinstance(eager, list | tuple) else [eager]
    found: dict[Symbol, tuple[int, str]] = {}
    for position, result in enumerate(results):
        shape = result.shape if isinstance(result, EagerTensor) else ()
        parts = [(size, f".shape[{dim}]") for dim, size in enumerate(shape)] or [(result, "")]
        for size, part in parts:
            symbol = None if isinstance(size, EagerTensor) else symbol_in(size)
            if symbol is not None and symbol.is_late and symbol not in known:
                found.setdefault(symbol, (position, part))
    return tuple((symbol, position, part) for symbol, (position, part) in found.items())


def in_order_of_sizes(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, each of which follows every call before it that tells a size."""
    tellers: frozenset[str] = frozenset()
    for node in nodes:
        yield replace(node, follows=tellers) if tellers else node
        if getattr(node, "sizes", ()):
            tellers |= {node.name}

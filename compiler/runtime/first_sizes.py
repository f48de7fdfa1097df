"""The data-dependent sizes of the first call: the report counts bytes with them, and choices use them."""

from __future__ import annotations

from typing import Any

import torch

from compiler.capture.captured import CapturedGraph, copy_values
from compiler.fx.notes import FIRST_SIZES
from compiler.lowering.eager import EagerTensor, describe, symbol_in
from compiler.lowering.late_sizes import late_symbols


def note_first_sizes(graph: CapturedGraph) -> None:
    """Run a graph that has such sizes on its first inputs, by ATen, and leave their values to lowering."""
    if graph.inputs is None or not any(late_symbols(_described(node)) for node in graph.aten.graph.nodes):
        return
    watching = _Watching(graph.aten)
    with torch.no_grad():
        watching.run(*copy_values(graph.inputs))
    graph.aten.meta[FIRST_SIZES] = watching.found


def _described(node: torch.fx.Node) -> Any:
    try:
        return describe(node.meta.get("val"))
    except NotImplementedError:  # of which lowering says what to do
        return None


class _Watching(torch.fx.Interpreter):
    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.found: dict[str, int] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        self._note(_described(n), result)
        return result

    def _note(self, described: Any, result: Any) -> None:
        if isinstance(described, list | tuple):
            for one, other in zip(described, result, strict=False):
                self._note(one, other)
        elif isinstance(described, EagerTensor):
            for size, value in zip(described.shape, result.shape, strict=True):
                self._note(size, value)
        elif (symbol := symbol_in(described)) is not None:
            self.found.setdefault(symbol.name, int(result))

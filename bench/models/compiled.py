"""What our compiler made of a model: graphs, kernels, library calls and their reasons, and where its time went."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from compiler.compile import Generated
from compiler.ir.nodes import ExternNode
from compiler.lowering.registry import operator_name


@dataclass
class Compiled:
    """Counts over all graphs of a model."""

    graphs: int = 0
    kernels: int = 0
    loop_nodes: int = 0
    library_calls: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)
    breaks: dict[str, int] = field(default_factory=dict)
    #: Convolutions by what was decided of their layout.
    layouts: Counter[str] = field(default_factory=Counter)
    #: Large products of odd sizes by whether they are padded.
    paddings: Counter[str] = field(default_factory=Counter)

    def add(self, compilation: Generated) -> None:
        """Count one graph that was compiled."""
        self.graphs += 1
        self.kernels += len(compilation.groups)
        self.loop_nodes += len(compilation.loops.nodes)
        self.seconds.update(compilation.seconds)
        for choice in compilation.layouts:
            self.layouts[choice.reason] += len(choice.nodes)
        self.paddings.update(choice.reason for choice in compilation.paddings)
        for unit in compilation.schedule.units:
            if isinstance(unit, ExternNode) and unit.is_fallback:
                name = operator_name(unit.target)
                self.fallbacks[name] += 1
                self.reasons.setdefault(name, unit.reason)
            elif isinstance(unit, ExternNode):
                self.library_calls[operator_name(unit.target)] += 1

    def told(self, first_step_s: float | None, second_step_s: float | None) -> dict[str, Any]:
        """As plain JSON. `capture` is what the first step took beyond our stages and beyond a second step: Dynamo and
        AOTAutograd. `build` is the C++ compiler, or on a GPU Triton."""
        seconds: dict[str, float] = {name: round(value, 3) for name, value in self.seconds.items()}
        if first_step_s is not None and second_step_s is not None:
            seconds["capture"] = round(first_step_s - second_step_s - sum(self.seconds.values()), 3)
        return {
            "graphs": self.graphs,
            "graph_breaks": sum(self.breaks.values()),
            "break_reasons": self.breaks,
            "loop_nodes": self.loop_nodes,
            "kernels": self.kernels,
            "library_calls": sum(self.library_calls.values()),
            "library_calls_by_name": dict(self.library_calls.most_common()),
            "convolutions_by_layout": dict(self.layouts),
            "products_by_padding": dict(self.paddings),
            "fallbacks": sum(self.fallbacks.values()),
            "fallbacks_by_name": dict(self.fallbacks.most_common()),
            "fallback_reasons": self.reasons,
            "compile_stages_s": seconds,
        }

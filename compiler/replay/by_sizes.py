"""Replay a graph with symbolic sizes: one CUDA graph for each set of sizes.

Plain numbers among the inputs count as sizes: a recording keeps the values that it was made with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.decisions import Decision
from compiler.ir.nodes import LoopGraph
from compiler.replay.recording import Call
from compiler.replay.replayed import ReplayedCall

#: Sizes that are watched and recorded; further ones are launched one by one.
MOST_SIZES = 8


def positions_of_sizes(graph: LoopGraph) -> tuple[int, ...] | None:
    """Positions of the inputs that are no tensors, which the graph's open sizes must be; None where one is known by the
    shape of a tensor alone."""
    if any(part for _, part in graph.symbols.values()):
        return None
    return tuple(place for place, name in enumerate(graph.inputs) if name is None)


class CallBySizes:
    """Called like the graph itself. `make` gives a new replayed call for the sizes of a call, which the inputs at
    `places` are; `call` launches one by one."""

    def __init__(self, call: Call, places: Sequence[int], make: Callable[[], ReplayedCall]) -> None:
        self._call, self._positions, self._make = call, tuple(places), make
        self._known: dict[tuple[Any, ...], ReplayedCall] = {}

    def __call__(self, inputs: list[Any]) -> list[Any]:
        sizes = tuple([inputs[place] for place in self._positions])
        known = self._known.get(sizes)
        if known is None:
            if len(self._known) >= MOST_SIZES:
                return self._call(inputs)
            known = self._known.setdefault(sizes, self._make())
        return known(inputs)

    @property
    def decision(self) -> Decision:
        return Decision("replay.watching") if self.shown is None else self.shown.decision

    @property
    def shown(self) -> ReplayedCall | None:
        """The call of the first sizes, unless that of later ones is replayed; None before the first call."""
        known = list(self._known.values())
        return next((call for call in known if call.decision.verdict == "replayed"), known[0] if known else None)

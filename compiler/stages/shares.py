"""How the stages of an exploration share its time, and what they say where it was not enough.

A stage takes its share of what is left when it begins, so that the later ones have enough to end in. What a stage does
not use stays with the whole. The largest programs lose precision first, then times, then the check against float64,
never their graphs, decisions and kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from compiler.budget import Budget, in_seconds
from compiler.report import Graph
from compiler.runtime.trial import MORE_TIME

_Item = TypeVar("_Item")

#: Parts of what is left. The snippet itself comes first, without which there is nothing.
_FOR_CAPTURE = 0.7
#: Assembling the Triton twins of what runs on a CPU, and running them in Triton's interpreter.
_FOR_ASSEMBLY, _FOR_EMULATION = 0.25, 0.1
#: The comparison with float64.
_FOR_CHECKS = 0.35
#: Times, where the peer comes after them; and of these the calls', which come before the kernels'.
_FOR_TIMES, _FOR_CALLS = 0.5, 0.6
#: What stays for the summary, and for what could not be stopped at once.
_RESERVE = 0.1
#: Stages without which an exploration has its graphs, decisions and kernels all the same.
_LEFT_OUT_FIRST = ("run", "measure", "profile", "compare", "emulate")


@dataclass(frozen=True)
class Shares:
    """The budget of an exploration by its stages; each property is a share of what is left when it is asked for."""

    whole: Budget

    @property
    def capture(self) -> Budget:
        return self.whole.share(_FOR_CAPTURE)

    @property
    def assembly(self) -> Budget:
        return self.whole.share(_FOR_ASSEMBLY)

    @property
    def checks(self) -> Budget:
        return self.whole.share(_FOR_CHECKS)

    @property
    def emulation(self) -> Budget:
        return self.whole.share(_FOR_EMULATION)

    @property
    def times(self) -> Budget:
        """For measuring, where nothing but the summary comes after it."""
        return self.whole.share(1 - _RESERVE)

    @property
    def times_before_peer(self) -> Budget:
        """For measuring, where the peer has yet to come."""
        return self.whole.share(_FOR_TIMES)

    @property
    def peer(self) -> Budget:
        return self.whole.share(1 - _RESERVE)

    def are_spent_for(self, stage: str) -> bool:
        """Whether the stage has to be left out, as all time is up and there is a report without it."""
        return stage in _LEFT_OUT_FIRST and self.whole.is_spent


def for_calls(times: Budget) -> Budget:
    """The part of the time for measuring in which eager and compiled are timed against each other."""
    return times.share(_FOR_CALLS)


def shared_out(budget: Budget, items: Sequence[_Item]) -> Iterator[tuple[_Item, Budget]]:
    """Each of the items with an equal part of what is left when its turn comes."""
    for place, item in enumerate(items):
        yield item, budget.share(1 / (len(items) - place))


def kernels_left_out(graph: Graph) -> str | None:
    """A sentence about the kernels that there was no time to measure alone; nothing where all of them were."""
    kernels = [kernel for kernel in graph.kernels if kernel.kind != "extern"]
    left_out = sum(kernel.measured_us is None for kernel in kernels)
    if not left_out:
        return None
    what = f"{left_out} of {len(kernels)} kernels of {graph.name}"
    return f"{what} were not timed alone: there was no time for them. {MORE_TIME}"


def slow_products(graph: str, seconds: float) -> str:
    """A sentence about a graph whose products this CPU computes slowly: a call would spend so many seconds on them."""
    return (
        f"This CPU has no fast products of the dtype that {graph} uses: a call would spend about {in_seconds(seconds)} "
        "in them, by the rate of a small one. Where only values are needed, they are computed in float32 and rounded."
    )


GRADIENTS_UNCHECKED = f"Gradients were not checked from end to end: that takes longer than the time left. {MORE_TIME}"
CALLS_UNTIMED = f"Eager and compiled were not timed: one call of each takes too long. {MORE_TIME}"


def peer_left_out(call_seconds: float) -> str:
    """Why the peer was not asked: one call alone would take more than is left."""
    return f"TorchInductor was not run, because that needs a call: one call takes {in_seconds(call_seconds)} at least."

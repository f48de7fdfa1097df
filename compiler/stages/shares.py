"""How the stages of an exploration share its time, and what they say where it was not enough.

A stage takes its share of what is left when it begins, so that the later ones have enough to end in. What a stage does
not use stays with the whole. The largest programs lose precision first, then times, then the check against float64,
never their graphs, decisions and kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from compiler.budget import Budget, in_seconds
from compiler.report import Graph
from compiler.runtime.trial import MORE_TIME
from compiler.wording import counted

_Item = TypeVar("_Item")

#: The part of what is left that each may take.
SHARES = {
    "capture": 0.7,  # the snippet itself, without which there is nothing
    "assembly": 0.25,  # of the Triton twins of what runs on a CPU
    "checks": 0.35,  # the comparison with float64
    "times before others": 0.5,
    "times": 0.9,  # what stays is for the summary, and for what could not be stopped at once
    "others": 0.9,  # the peer and other contestants
    "emulation": 0.1,  # of those twins, in Triton's interpreter
}
#: Of the time for measuring, the part of the calls, which come before the kernels.
OF_CALLS = 0.6
#: Stages without which an exploration has its graphs, decisions and kernels all the same.
LEFT_OUT_FIRST = ("run", "measure", "profile", "compare", "emulate")


def shared_out(budget: Budget, items: Sequence[_Item]) -> Iterator[tuple[_Item, Budget]]:
    """Each of the items with an equal part of what is left when its turn comes."""
    for position, item in enumerate(items):
        yield item, budget.share(1 / (len(items) - position))


def kernels_left_out(graph: Graph) -> str | None:
    """A sentence about the kernels that there was no time to measure alone; nothing where all of them were."""
    kernels = [kernel for kernel in graph.kernels if kernel.kind != "extern"]
    left_out = sum(kernel.measured_us is None for kernel in kernels)
    if not left_out:
        return None
    what = f"{left_out} of {counted(len(kernels), 'kernel')} of {graph.name}"
    return f"There was no time to time {what} alone. {MORE_TIME}"


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

"""Why two nodes were fused or not: the one closed list of reasons.

`can_fuse` answers with `Fuse` or with `Refuse(reason, numbers)`; there is no bare no. `sentence` is for a learner;
`template` makes the message of one decision out of its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Family = Literal["fused", "dependency", "index", "shape", "profit", "kind", "policy"]


@dataclass(frozen=True)
class Reason:
    id: str
    family: Family
    sentence: str
    template: str


def _list(*reasons: Reason) -> dict[str, Reason]:
    return {reason.id: reason for reason in reasons}


REASONS: dict[str, Reason] = _list(
    Reason(
        "fused.vertical",
        "fused",
        "One node reads what the other writes, at the same point of the same loops, so the value stays in a register.",
        "{b} reads {shared} at the point where {a} makes it: the value stays in a register",
    ),
    Reason(
        "fused.inline",
        "fused",
        "The producer is cheap and nothing else reads it, so it is computed again wherever the consumer needs it.",
        "{a} is computed inside {b} at each point that reads it; {shared} never reaches memory",
    ),
    Reason(
        "fused.horizontal",
        "fused",
        "Both nodes run over the same loops and read the same data, so one kernel reads it once for both.",
        "{a} and {b} read {shared} in the same loops: it is read once for both",
    ),
    Reason(
        "fused.recompute",
        "fused",
        "The value is cheap to compute again from what is in memory anyway, so it is not written for its readers.",
        "{b} computes {shared} again instead of reading it: it never reaches memory",
    ),
    Reason(
        "dependency.intermediate",
        "dependency",
        "A third node must run after the one and before the other; a single kernel cannot wait for it in the middle.",
        "{between} must run after {a} and before {b}",
    ),
    Reason(
        "dependency.scatter",
        "dependency",
        "A scatter changes memory at places that are known only when it runs: what it changes must be complete before "
        "it starts, and its result may be read only when every update is done.",
        "{scatter} updates {shared} at computed places: it cannot share a loop with what fills or reads that",
    ),
    Reason(
        "index.different_positions",
        "index",
        "The consumer reads an element at another point of the loop than the one that makes it, and by then it may not "
        "have been made.",
        "{a} writes {shared} at {written}, {b} reads it at {read}",
    ),
    Reason(
        "index.no_common_loops",
        "index",
        "No one-to-one change of loop variables makes the two loop nests visit the same elements together.",
        "the loops {space_a} of {a} and {space_b} of {b} cannot be brought together over {shared}",
    ),
    Reason(
        "shape.numel",
        "shape",
        "The two loop nests have different numbers of iterations.",
        "{a} runs {iterations_a} iterations, {b} runs {iterations_b}",
    ),
    Reason(
        "shape.reduction_axes",
        "shape",
        "One node reduces along an axis that is an independent loop of the other.",
        "{a} reduces over {space_a}, {b} over {space_b}: the reduced axes differ",
    ),
    Reason(
        "kind.extern",
        "kind",
        "A library call is a finished kernel: nothing can be put inside it.",
        "{extern} is a library call",
    ),
    Reason(
        "profit.slower",
        "profit",
        "The device model expects the fused kernel to take longer than the two separate ones.",
        "predicted {fused_us:.1f} us fused against {unfused_us:.1f} us apart",
    ),
    Reason(
        "profit.too_many_buffers",
        "profit",
        "The fused kernel would touch so many tensors that their addresses and values no longer fit into registers.",
        "{buffers} buffers in one kernel, at most {limit}",
    ),
    Reason(
        "policy.disabled",
        "policy",
        "This kind of fusion was turned off by a knob of the exploration.",
        "the knob {knob} forbids it",
    ),
    Reason(
        "policy.group_size",
        "policy",
        "The group would have more nodes than the largest allowed.",
        "{nodes} nodes in one group, at most {limit}",
    ),
)


@dataclass(frozen=True)
class Refuse:
    """A refusal to fuse: the id of its reason, and the numbers that it rests on."""

    reason: str
    numbers: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise KeyError(f"{self.reason!r} is not in the closed list of reasons")


def message_of(reason: str, names: dict[str, Any]) -> str:
    """The sentence of one decision; `names` holds a, b and the numbers."""
    return REASONS[reason].template.format_map(names)

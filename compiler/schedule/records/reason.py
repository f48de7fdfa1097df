"""What a reason is: the id that a record names, and the sentences that a reader gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal[
    "fused", "dependency", "index", "shape", "profit", "kind", "policy", "layout", "folding", "padding", "replay"
]  # fmt: skip


@dataclass(frozen=True)
class Reason:
    """`sentence` is for a learner; `template` makes the message of one decision out of its numbers."""

    id: str
    family: Family
    sentence: str
    template: str


def listed(*reasons: Reason) -> dict[str, Reason]:
    return {reason.id: reason for reason in reasons}

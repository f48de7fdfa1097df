"""The record of one graph's decision: how its launches reach the device, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.schedule.records.reasons import REASONS, REPLAYED, message_of

Number = float | int | str


@dataclass(frozen=True)
class ReplayDecision:
    """`reason` is an id of `REASONS`; `numbers` are what its sentence names: times in microseconds, measured but for
    `replay_us`, `copied_us` and `saved_us`, which are predictions. `node` is the call that stands in the way, `lines`
    are its lines in the user's source."""

    reason: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    node: str | None = None
    lines: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise KeyError(f"{self.reason!r} is not in the closed list of reasons")

    @property
    def is_replayed(self) -> bool:
        return self.reason in REPLAYED

    @property
    def message(self) -> str:
        return message_of(self.reason, self.numbers)

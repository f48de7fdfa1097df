"""Weigh a replay: what it saves the host and the device against what it copies.

What the host takes to launch one by one, and how long that keeps the device, are measured in the first calls. Where the
device waits for the host, a replay takes the host one launch and the copies of what the caller may not share with the
recording. The device goes from launch to launch a little faster than through a stream, and has the copies to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.decisions import Decision

#: Host time of one replay, that of each launch in it, and of each tensor that is copied in or out: estimates, which add
#: up to the 36.8 us that 85 launches and one copy were measured to take beside an H200.
REPLAY_US, REPLAYED_LAUNCH_US = 8.0, 0.3
COPY_US = 5.0
#: The same of each further tensor that is copied along with others, and of one that is held.
COPY_TOGETHER_US, HELD_US = 2.0, 1.0
#: What the device saves from one launch to the next, and what a copy takes it besides its bytes: measured on an H200
#: (24 launches: 59.9 us one by one and 44.0 us replayed; 45.5 us with one more input to copy).
GAP_US = 0.5
COPY_DEVICE_US = 1.5
#: Tensors from which on they are copied by few launches.
FEWEST_TOGETHER = 4
#: A device that is busy for more than this share of the host's time would not be any faster with a faster host.
BUSY_SHARE = 1.25
#: What a replay may take of the host's time to be worth a recording.
WORTH = 0.8
#: By how much a device that waits for the host may get slower, and by how much a busy one must get faster, as shares of
#: the time that it takes. How long the first is busy is not known, so that it may be nearly all the time.
MOST_ADDED, LEAST_SAVED = 0.05, 0.01


@dataclass(frozen=True)
class Copies:
    """Tensors that each replay copies, and their bytes (each is read and written); `held` are given as they are."""

    tensors: int
    bytes: int
    held: int = 0

    @property
    def host_us(self) -> float:
        alone = min(self.tensors, FEWEST_TOGETHER)
        return COPY_US * alone + COPY_TOGETHER_US * (self.tensors - alone) + HELD_US * self.held

    def device_us(self, bandwidth: float) -> float:
        alone = min(self.tensors, FEWEST_TOGETHER)
        return 2e6 * self.bytes / bandwidth + COPY_DEVICE_US * alone

    def __add__(self, other: Copies) -> Copies:
        return Copies(self.tensors + other.tensors, self.bytes + other.bytes, self.held + other.held)


NO_COPIES = Copies(0, 0)


@dataclass(frozen=True)
class Times:
    """Of one call, in microseconds: until the host has returned, and between the events before its first launch and
    after its last."""

    host_us: float
    elapsed_us: float
    #: Whether the device had nothing left to do when the call began.
    is_idle_before: bool = False

    @property
    def pace_us(self) -> float:
        """The time of a call among many: the longer of the host's and the device's."""
        return max(self.host_us, self.elapsed_us)


def weigh(times: Times, launches: int, copies: Copies, bandwidth: float, is_of_step: bool = False) -> Decision:
    """The decision; `bandwidth` is the device's, bytes read plus bytes written per second. A graph that `is_of_step` is
    one of several between which the host has much to do."""
    copied_us = copies.device_us(bandwidth)
    replay_us = REPLAY_US + REPLAYED_LAUNCH_US * launches + copies.host_us
    added_us = copied_us - GAP_US * launches
    numbers: dict[str, Any] = {
        "launches": launches,
        "host_us": round(times.host_us, 1),
        "elapsed_us": round(times.elapsed_us, 1),
        "replay_us": round(replay_us, 1),
        "copied_us": round(copied_us, 1),
        "saved_us": round(-added_us, 1),
        "copied_bytes": copies.bytes,
    }
    if times.elapsed_us > BUSY_SHARE * times.host_us:
        is_faster = -added_us > LEAST_SAVED * times.elapsed_us
        is_worth_it = replay_us <= WORTH * times.host_us and added_us <= MOST_ADDED * times.elapsed_us
        if is_of_step and times.is_idle_before and is_worth_it:
            return Decision("replay.idle_between", numbers)
        return Decision("replay.gaps" if is_faster else "replay.device_bound", numbers)
    if replay_us > WORTH * times.host_us or added_us > MOST_ADDED * times.elapsed_us:
        return Decision("replay.slower", numbers)
    return Decision("replay.replayed", numbers)

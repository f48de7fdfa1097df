"""Whether a replay pays: what it saves the host against what it copies.

What the host takes to launch one by one, and how long that keeps the device, are measured in the first calls. A replay
helps only where the device waits for the host; then it takes the host one launch, a few copies of what the caller may
not share with the recording, and the device the bytes of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.replay.decision import Number, ReplayDecision

#: Host time of one replay, and of each tensor that is copied in or out: measured on an H200's host.
REPLAY_US = 10.0
COPY_US = 5.0
#: A device that is busy for more than this share of the host's time would not be any faster with a faster host.
BUSY_SHARE = 1.25
#: What must be left of the host's time for a recording, which takes memory, to be worth it.
WORTH = 0.9


@dataclass(frozen=True)
class Copies:
    """Tensors that each replay copies, and their bytes (each is read and written)."""

    tensors: int
    bytes: int


@dataclass(frozen=True)
class Times:
    """Of one call whose launches go out one by one, in microseconds: until the host has returned, and between the
    events before its first launch and after its last."""

    host_us: float
    elapsed_us: float


def weigh(times: Times, launches: int, copies: Copies, bandwidth: float) -> ReplayDecision:
    """The decision; `bandwidth` is the device's, bytes read plus bytes written per second."""
    copied_us = 2e6 * copies.bytes / bandwidth
    replay_us = REPLAY_US + COPY_US * copies.tensors
    numbers: dict[str, Number] = {
        "launches": launches,
        "host_us": round(times.host_us, 1),
        "elapsed_us": round(times.elapsed_us, 1),
        "replay_us": round(replay_us, 1),
        "copied_us": round(copied_us, 1),
        "copied_bytes": copies.bytes,
    }
    if times.elapsed_us > BUSY_SHARE * times.host_us:
        return ReplayDecision("replay.device_bound", numbers)
    if replay_us + copied_us > WORTH * times.host_us:
        return ReplayDecision("replay.slower", numbers)
    return ReplayDecision("replay.replayed", numbers)

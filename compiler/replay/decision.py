"""How the launches of a graph reach the device, and why: the closed list, and the record of one graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Each outcome with the sentence that a learner reads, filled in from the numbers of the record.
SENTENCES: dict[str, str] = {
    "replay.replayed": (
        "replayed as one CUDA graph: {recorded} of its {launches} launches are recorded; a call takes the host about "
        "{replay_us:.0f} us in place of the {host_us:.0f} us measured one by one; {copied_bytes} bytes are copied in it"
    ),
    "replay.gaps": (
        "replayed as one CUDA graph: {launches} launches keep the device busy for {elapsed_us:.0f} us, of which about "
        "{saved_us:.0f} us between launches are spared; {copied_bytes} bytes are copied in each call"
    ),
    "replay.asked_for": (
        "replayed as one CUDA graph, as the option asks: {launches} launches; {copied_bytes} bytes are copied in each "
        "call"
    ),
    "replay.watching": "launched one by one: the first calls are watched before anything is recorded",
    "replay.off": "launched one by one: the option turns CUDA graphs off",
    "replay.few_launches": "launched one by one: with {launches} launches a CUDA graph would save the host no time",
    "replay.open_sizes": "launched one by one: a CUDA graph has fixed sizes, and one is known by a tensor's shape only",
    "replay.other_device": "launched one by one: a CUDA graph holds work of one GPU, and {what} needs another device",
    "replay.unknown_call": "launched one by one: it is not known whether {what} may be recorded in a CUDA graph",
    "replay.random_call": "launched one by one: {what} draws random numbers by its own way",
    "replay.training": (
        "launched one by one: what a forward graph saves for its backward graph would be copied, as this torch does "
        "not tell who still has it"
    ),
    "replay.memory": "launched one by one: a recording would hold {peak_bytes} bytes of the device's memory for good",
    "replay.device_bound": (
        "launched one by one: the device takes {elapsed_us:.0f} us and the host only {host_us:.0f} us to launch, so "
        "that a replay would save next to nothing"
    ),
    "replay.behind": "launched one by one: the device was behind the host in every call that was watched",
    "replay.slower": (
        "launched one by one: the host needs {host_us:.0f} us to launch, and a replay would take it about "
        "{replay_us:.0f} us, and the device {copied_us:.0f} us for copies"
    ),
    "replay.no_faster": (
        "launched one by one: a call took {replayed_us:.0f} us replayed and {pace_us:.0f} us one by one, both measured"
    ),
    "replay.inputs_move": (
        "launched one by one: inputs came at other addresses after each of {recordings} recordings, lastly {what}"
    ),
    "replay.overlapping": (
        "launched one by one: an input comes at other addresses, and its elements share memory, so that it cannot be "
        "copied to one place"
    ),
    "replay.failed": "launched one by one: CUDA could not record the launches: {what}",
}

#: The outcomes with which launches are replayed.
REPLAYED = frozenset({"replay.replayed", "replay.gaps", "replay.asked_for"})

Number = float | int | str


@dataclass(frozen=True)
class ReplayDecision:
    """`reason` is a key of `SENTENCES`; `numbers` are what its sentence names: times in microseconds, measured but for
    `replay_us` and `copied_us`, which are predictions."""

    reason: str
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @property
    def is_replayed(self) -> bool:
        return self.reason in REPLAYED

    @property
    def is_told(self) -> bool:
        """Whether a reader would wonder: not of a few launches, nor of what was turned off."""
        return self.reason not in ("replay.few_launches", "replay.off", "replay.watching")

    @property
    def message(self) -> str:
        return SENTENCES[self.reason].format(**self.numbers)

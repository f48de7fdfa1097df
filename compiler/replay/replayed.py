"""A graph's call that becomes a replay: watched for a few calls, weighed, recorded, replayed.

The first calls go out launch by launch and are watched: where their inputs lie, how long the host takes, how long the
device. Then it is decided, once, and the decision is a record (`decision`). Nothing is executed while launches are
recorded, so the call during which that happens is itself the first replay, and no input is written to twice.

A replay belongs to the stream that was current when it was recorded. In another one (which includes a stream on which
the caller records a CUDA graph) launches go out one by one, since replays that share memory must not overlap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch

from compiler.replay.decision import Number, ReplayDecision
from compiler.replay.inputs import Places, addresses_of, has_place, place_for
from compiler.replay.outputs import Give, copies_of, giver
from compiler.replay.price import Copies, Times, weigh

#: Calls that are watched before it is decided.
WATCHED_CALLS = 3
#: Calls after which the times must be known: a device that is behind the host in all of them keeps it waiting.
MOST_WATCHED_CALLS = 32
#: Recordings of one graph, after which its inputs are taken to move for good.
MOST_RECORDINGS = 5
#: Recordings after which an input is copied as soon as it has moved.
PATIENT_RECORDINGS = 3

Call = Callable[[list[Any]], list[Any]]
Choice = Literal["auto", "on", "off"]


class CannotRecord(RuntimeError):
    """The launches were not recorded; says why. Nothing of the call was executed."""


class Recording(Protocol):
    """Launches that can be replayed; `outputs` are what the call gave while it was recorded, in memory that each replay
    writes anew."""

    outputs: list[Any]
    replay: Callable[[], None]


class Recorder(Protocol):
    """What is needed of a device; `compiler.replay.recorder` has that of CUDA."""

    #: Held while the memory that replays share is in use.
    lock: AbstractContextManager[Any]

    def stream(self) -> int:
        """The current stream; less than 0 where another device than the recorder's is the current one."""
        ...

    def is_capturing(self) -> bool:
        """Whether the caller records what is launched on the current stream."""
        ...

    def timed(self, call: Call, inputs: list[Any]) -> tuple[list[Any], Callable[[], Times | None]]:
        """What the call gives, and a function that gives its times, or None as long as the device is not done."""
        ...

    def record(self, call: Call, inputs: list[Any]) -> Recording:
        """Record what the call launches, for replays on the current stream. Raises `CannotRecord`."""
        ...

    def unmoved(self, addresses: Sequence[int]) -> Callable[[list[Any]], bool]:
        """A quick test of whether a call's inputs are at these addresses; at any, where one is 0."""
        ...


@dataclass(frozen=True)
class Facts:
    """What of a graph is known before its first call."""

    launches: int
    bandwidth: float
    written: frozenset[int] = frozenset()


class ReplayedCall:
    """Called like the graph itself, with one list of inputs. `decision` says how its launches reach the device."""

    def __init__(self, call: Call, facts: Facts, recorder: Recorder, choice: Choice) -> None:
        self.decision = ReplayDecision("replay.watching")
        self.recordings = 0
        self._call, self._facts, self._recorder, self._choice = call, facts, recorder, choice
        self._step: Call = self._watch
        self._watched = 0
        self._places = Places(facts.written)
        self._times: list[Callable[[], Times | None]] = []
        self._outputs = Copies(0, 0)
        self._deciding = threading.Lock()

    def __call__(self, inputs: list[Any]) -> list[Any]:
        return self._step(inputs)

    def settle(self, decision: ReplayDecision) -> None:
        """Launch one by one from now on."""
        self.decision = decision
        self._step = self._call
        self._times.clear()

    def _call_settled(self, inputs: list[Any], decision: ReplayDecision) -> list[Any]:
        self.settle(decision)
        return self._call(inputs)

    # --- watching

    def _watch(self, inputs: list[Any]) -> list[Any]:
        recorder = self._recorder
        if recorder.stream() < 0 or recorder.is_capturing() or not self._deciding.acquire(blocking=False):
            return self._call(inputs)  # a recording of the caller's own, or another thread is in the middle of this
        try:
            has_been_decided = self._step != self._watch  # by another thread, since this call was looked up
            return self._step(inputs) if has_been_decided else self._watch_alone(inputs)
        finally:
            self._deciding.release()

    def _watch_alone(self, inputs: list[Any]) -> list[Any]:
        self._places.note(addresses_of(inputs))
        if self._watched >= WATCHED_CALLS and (decision := self._decided(inputs)) is not None:
            if decision.is_replayed:
                return self._record(inputs, decision)
            return self._call_settled(inputs, decision)
        if self._watched == 0 or self._watched >= WATCHED_CALLS:
            outputs = self._call(inputs)  # the first call may still compile, or load, what it launches
        else:
            outputs, times = self._recorder.timed(self._call, inputs)
            self._times.append(times)
            self._outputs = copies_of(inputs, outputs)
        self._watched += 1
        return outputs

    def _decided(self, inputs: list[Any]) -> ReplayDecision | None:
        """None as long as the times are not known."""
        copies = self._copies(inputs)
        numbers: dict[str, Number] = {"launches": self._facts.launches, "copied_bytes": copies.bytes}
        if self._choice == "on":
            return ReplayDecision("replay.asked_for", numbers)
        known = [found for times in self._times if (found := times()) is not None]
        if len(known) < len(self._times):
            if self._watched < MOST_WATCHED_CALLS:
                return None
            return ReplayDecision("replay.behind", numbers)
        least = Times(min(t.host_us for t in known), min(t.elapsed_us for t in known))
        return weigh(least, self._facts.launches, copies, self._facts.bandwidth)

    def _copies(self, inputs: list[Any]) -> Copies:
        moved = [inputs[n] for n in self._places.copied()]
        size = sum(value.numel() * value.itemsize for value in moved)
        return Copies(self._outputs.tensors + len(moved), self._outputs.bytes + size)

    # --- recording

    def _record(self, inputs: list[Any], decision: ReplayDecision) -> list[Any]:
        """Record, and run this call as the first replay."""
        self.recordings += 1
        places = self._places.copied()
        if not all(has_place(inputs[n]) for n in places):
            return self._call_settled(inputs, ReplayDecision("replay.overlapping"))
        copied = {n: place_for(inputs[n]) for n in places}
        given = [copied.get(place, value) for place, value in enumerate(inputs)]
        try:
            with self._recorder.lock, torch.inference_mode(False), torch.no_grad():
                recording = self._recorder.record(self._call, list(given))
        except CannotRecord as error:
            return self._call_settled(inputs, ReplayDecision("replay.failed", {"what": str(error)}))
        fixed = [0 if place in copied else address for place, address in enumerate(addresses_of(inputs))]
        self.decision = decision
        self._times.clear()
        give = giver(given, recording.outputs)
        recording.outputs = []  # some may be inputs, which are not ours to keep
        self._step = self._replay_of(recording, copied, give, fixed)
        return self._step(inputs)

    def _replay_of(
        self, recording: Recording, copied: dict[int, torch.Tensor], give: Give, fixed: Sequence[int]
    ) -> Call:
        is_unmoved, stream_now = self._recorder.unmoved(fixed), self._recorder.stream
        stream, lock, places = stream_now(), self._recorder.lock, tuple(copied.items())

        is_capturing = self._recorder.is_capturing if stream else _never  # nothing is recorded on the default stream

        def replay(inputs: list[Any]) -> list[Any]:
            if stream_now() != stream or is_capturing():
                return self._call(inputs)
            if not is_unmoved(inputs):
                return self._record_anew(inputs)
            with lock:
                for place, tensor in places:
                    tensor.copy_(inputs[place])
                recording.replay()
                return give(inputs)

        return replay

    def _record_anew(self, inputs: list[Any]) -> list[Any]:
        """An input that is part of the recording came at another address."""
        if not self._deciding.acquire(blocking=False):
            return self._call(inputs)
        try:
            moved = self._places.note(addresses_of(inputs))
            self._places.is_patient = self.recordings < PATIENT_RECORDINGS
            decision = self._still_worth(inputs, moved)
            self._step = self._call  # lets go of the recording
            if decision.is_replayed:
                return self._record(inputs, decision)
            return self._call_settled(inputs, decision)
        finally:
            self._deciding.release()

    def _still_worth(self, inputs: list[Any], moved: tuple[int, ...]) -> ReplayDecision:
        if self.recordings >= MOST_RECORDINGS:
            what = f"input {moved[0]}" if moved else "an input"
            return ReplayDecision("replay.inputs_move", {"recordings": self.recordings, "what": what})
        copies, numbers = self._copies(inputs), self.decision.numbers
        if self._choice == "on":
            return ReplayDecision("replay.asked_for", {**numbers, "copied_bytes": copies.bytes})
        times = Times(float(numbers["host_us"]), float(numbers["elapsed_us"]))
        return weigh(times, self._facts.launches, copies, self._facts.bandwidth)


def _never() -> bool:
    return False

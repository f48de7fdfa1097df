"""The call of a graph that becomes a replay: it is watched for a few calls, weighed, recorded, and replayed.

The first calls go out launch by launch and are watched: where their inputs lie, how long the host takes, how long the
device. Then it is decided, once, and the decision is a record (`decision`). Nothing is executed while launches are
recorded, so the call during which that happens is itself the first replay, and no input is written to twice. The first
replays are timed too: where they are no faster than the calls that were watched, the recording is let go.

A replay belongs to the stream that was current when it was recorded. In another one (which includes a stream on which
the caller records a CUDA graph) launches go out one by one, since replays that share memory must not overlap.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from compiler.capture.captured import Phase
from compiler.decisions import Decision
from compiler.replay.inputs import Call, CannotRecord, InputAddresses, addresses_of, has_memory, memory_for
from compiler.replay.outputs import Giver, Made, copies_of, made_by
from compiler.replay.price import NO_COPIES, Copies, Times, weigh

if TYPE_CHECKING:
    from compiler.replay.recorder import CudaRecorder, CudaRecording

#: Calls that are watched before it is decided.
WATCHED_CALLS = 3
#: Calls after which the times must be known: a device that is behind the host in all of them keeps it waiting.
MOST_WATCHED_CALLS = 32
#: Calls for which a backward graph waits beyond those: its forward graph, once it is replayed, holds what it reads.
WAITED_CALLS = 2
#: Replays that are timed, and how much longer than the watched calls they may take: less is noise.
TIMED_REPLAYS = 3
MOST_SLOWER = 1.05
#: What a recording may take of the device's memory that nobody has when it is decided.
MOST_OF_FREE = 0.5
#: Recordings of one graph, after which its inputs are taken to move for good.
MOST_RECORDINGS = 5
#: Recordings after which an input is copied as soon as it has moved.
PATIENT_RECORDINGS = 3

Choice = Literal["auto", "on", "off"]


@dataclass(frozen=True)
class Facts:
    """What of a graph is known before its first call, with positions of the inputs that it writes to and of the outputs
    that may be held."""

    launches: int
    bandwidth: float
    phase: Phase = "inference"
    written: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    #: What all recordings of the device may hold, unless they are asked for.
    most_held_bytes: float = math.inf
    #: The most that a call has alive at one time, its inputs not counted.
    peak_bytes: int = 0


@dataclass(frozen=True)
class Plan:
    """How a graph is to be called: the decision, and what each replay of a recording copies."""

    decision: Decision
    copied_in: Copies = NO_COPIES
    copied_out: Copies = NO_COPIES


class ReplayedCall:
    """Called like the graph itself, with one list of inputs. `decision` says how its launches reach the device."""

    def __init__(self, call: Call, facts: Facts, recorder: CudaRecorder, choice: Choice) -> None:
        self.decision = Decision("replay.watching")
        self.recordings = 0
        #: Calls since the first recording: as replays, and launch by launch.
        self.replays = self.launched = 0
        #: Positions of the inputs that are copied in each call, of those that another graph's recording holds.
        self.copied: tuple[int, ...] = ()
        self.held_inputs: tuple[int, ...] = ()
        self.copied_in = self.copied_out = NO_COPIES
        self.given: Giver | None = None
        self.phase = facts.phase
        self._call, self._facts, self._recorder, self._choice = call, facts, recorder, choice
        self._step: Call = self._watch
        self._watched = 0
        self._addresses = InputAddresses(facts.written)
        self._times: list[Callable[[], Times | None]] = []
        self._replay_times: list[Callable[[], Times | None]] = []
        self._made: tuple[Made, ...] = ()
        self._deciding = threading.Lock()

    def __call__(self, inputs: list[Any]) -> list[Any]:
        return self._step(inputs)

    def settle(self, decision: Decision) -> None:
        """Launch one by one from now on."""
        self.decision = decision
        self._step = self._call
        self.given = None

    def _call_settled(self, inputs: list[Any], decision: Decision) -> list[Any]:
        self.settle(decision)
        return self._call(inputs)

    def pool_bytes(self) -> int:
        """What the pool of the recording takes, shared with all others on its stream."""
        return self._recorder.pool_bytes()

    @property
    def launched_times(self) -> Times | None:
        """The least that the watched calls took; None where that is not known."""
        return _least(self._times)

    @property
    def replayed_times(self) -> Times | None:
        """The same of the first replays of the last recording."""
        return _least(self._replay_times)

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
        self._addresses.note(addresses_of(inputs))
        if self._watched >= WATCHED_CALLS and (plan := self._decided(inputs)) is not None:
            if plan.decision.verdict == "replayed":
                return self._record(inputs, plan)
            return self._call_settled(inputs, plan.decision)
        if self._watched == 0 or self._watched >= WATCHED_CALLS:
            outputs = self._call(inputs)  # the first call may still compile, or load, what it launches
        else:
            outputs, times = self._recorder.timed(self._call, inputs)
            self._times.append(times)
            self._made = made_by(inputs, outputs)
        self._watched += 1
        return outputs

    def _decided(self, inputs: list[Any]) -> Plan | None:
        """None as long as the times are not known, or inputs come from a forward graph that may yet be replayed."""
        if self._waits_for_forward(inputs):
            return None
        times = self.launched_times
        if times is None and self._choice != "on":
            if self._watched < MOST_WATCHED_CALLS:
                return None
            return Plan(Decision("replay.behind", {"launches": self._facts.launches}))
        return self._weighed(inputs, times)

    def _waits_for_forward(self, inputs: list[Any]) -> bool:
        if self.phase != "backward" or self._choice == "on" or self._watched >= WATCHED_CALLS + WAITED_CALLS:
            return False
        return bool(self._moving(inputs)) and not self._held_now(inputs)

    def _weighed(self, inputs: list[Any], times: Times | None) -> Plan:
        facts = self._facts
        moved = [inputs[n] for n in self._moving(inputs)]
        copied_in = Copies(len(moved), sum(value.numel() * value.itemsize for value in moved))
        copied_out = copies_of(self._made, facts.held)
        copies = copied_in + copied_out
        if self._choice == "on":
            numbers: dict[str, Any] = {"launches": facts.launches, "copied_bytes": copies.bytes}
            decision = Decision("replay.asked_for", numbers)
        elif (wanted := self._memory_lacking()) is not None:
            decision = Decision("replay.memory", {"peak_bytes": wanted})
        else:
            assert times is not None
            decision = weigh(times, facts.launches, copies, facts.bandwidth, facts.phase != "inference")
        return Plan(decision, copied_in, copied_out)

    def _memory_lacking(self) -> int | None:
        """What a recording would keep or hold where that is too much: nobody has asked for it."""
        facts, recorder = self._facts, self._recorder
        mine = sum(piece.bytes for piece in self._made if piece.positions <= facts.held)
        if mine and mine + recorder.held.bytes > facts.most_held_bytes:
            return mine + recorder.held.bytes
        return facts.peak_bytes if facts.peak_bytes > MOST_OF_FREE * recorder.free_bytes() else None

    def _held_now(self, inputs: list[Any]) -> tuple[int, ...]:
        """Positions of the inputs that lie where another recording holds its outputs."""
        addresses = addresses_of(inputs)
        return tuple(n for n, address in enumerate(addresses) if address and address in self._recorder.held)

    def _moving(self, inputs: list[Any]) -> tuple[int, ...]:
        held = self._held_now(inputs)
        return tuple(n for n in self._addresses.copied() if n not in held)

    # --- recording

    def _record(self, inputs: list[Any], plan: Plan) -> list[Any]:
        """Record, and run this call as the first replay."""
        self.recordings += 1
        self.copied, self.held_inputs = self._moving(inputs), self._held_now(inputs)
        if not all(has_memory(inputs[n]) for n in self.copied):
            return self._call_settled(inputs, Decision("replay.overlapping"))
        memories = {n: memory_for(inputs[n]) for n in self.copied}
        given = [memories.get(position, value) for position, value in enumerate(inputs)]
        try:
            with self._recorder.lock, torch.inference_mode(False), torch.no_grad():
                recording = self._recorder.record(self._call, list(given), bool(self._facts.held))
        except CannotRecord as error:
            return self._call_settled(inputs, Decision("replay.failed", {"what": str(error)}))
        fixed = [0 if position in memories else address for position, address in enumerate(addresses_of(inputs))]
        self.decision = plan.decision
        self.copied_in, self.copied_out = plan.copied_in, plan.copied_out
        self.given = Giver(given, recording.outputs, self._facts.held)
        recording.outputs = []  # some may be inputs, which are not ours to keep
        self._step = self._tried(self._replay_of(recording, memories, self.given, fixed))
        return self._step(inputs)

    def _replay_of(
        self, recording: CudaRecording, copied: dict[int, torch.Tensor], given: Giver, fixed: Sequence[int]
    ) -> Call:
        is_unmoved, stream_now = self._recorder.unmoved(fixed), self._recorder.stream
        stream, lock, tensors = stream_now(), self._recorder.lock, tuple(copied.items())
        if given.held is not None:
            self._recorder.held.add(given.held)
        is_capturing = self._recorder.is_capturing if stream else _never  # nothing is recorded on the default stream

        def replay(inputs: list[Any]) -> list[Any]:
            if stream_now() != stream or is_capturing():
                return self._launch(inputs)
            if not is_unmoved(inputs):
                return self._come_elsewhere(inputs)
            with lock:
                if given.are_free():
                    for position, tensor in tensors:
                        tensor.copy_(inputs[position])
                    recording.replay()
                    self.replays += 1
                    return given(inputs)
            return self._launch(inputs)

        return replay

    def _launch(self, inputs: list[Any]) -> list[Any]:
        self.launched += 1
        return self._call(inputs)

    def _tried(self, replay: Call) -> Call:
        """The first replays, of which all but the first are timed, since that one loads what it launches."""
        self._replay_times, tried = [], 0

        def first(inputs: list[Any]) -> list[Any]:
            nonlocal tried
            if self._step is not first:  # another thread was here
                return self._step(inputs)
            if self._recorder.is_capturing():  # a recording of the caller's own, which timing would end
                return self._launch(inputs)
            before, tried = self.replays, tried + 1
            if tried == 1:
                return replay(inputs)
            if len(self._replay_times) < TIMED_REPLAYS and tried < MOST_WATCHED_CALLS:
                outputs, times = self._recorder.timed(replay, inputs)
                if self._step is first and self.replays > before:
                    self._replay_times.append(times)
                return outputs
            if self.replayed_times is not None or tried >= MOST_WATCHED_CALLS:
                self._step = replay
                self._judge()
            return self._step(inputs) if self._step is not first else replay(inputs)

        return first

    def _judge(self) -> None:
        """Drop a recording whose replays were measured to be no faster."""
        ours, before = self.replayed_times, self.launched_times
        if self._choice != "auto" or ours is None or before is None:
            return
        if ours.pace_us > MOST_SLOWER * before.pace_us:
            numbers = {"pace_us": round(before.pace_us, 1), "replayed_us": round(ours.pace_us, 1)}
            self.settle(Decision("replay.no_faster", {**self.decision.numbers, **numbers}))

    def _come_elsewhere(self, inputs: list[Any]) -> list[Any]:
        """An input that is part of the recording came at another address: one that was not held this time, as the graph
        that gave it was not replayed, or one that may have been replaced for good."""
        held = self._recorder.held
        if any(inputs[n].data_ptr() not in held for n in self.held_inputs):
            return self._launch(inputs)
        return self._record_anew(inputs)

    def _record_anew(self, inputs: list[Any]) -> list[Any]:
        if not self._deciding.acquire(blocking=False):
            return self._launch(inputs)
        try:
            moved = self._addresses.note(addresses_of(inputs))
            self._addresses.is_patient = self.recordings < PATIENT_RECORDINGS
            self._step, self.given = self._call, None  # lets go of the recording
            if self.recordings >= MOST_RECORDINGS:
                what = f"input {moved[0]}" if moved else "an input"
                numbers: dict[str, Any] = {"recordings": self.recordings, "what": what}
                return self._call_settled(inputs, Decision("replay.inputs_move", numbers))
            plan = self._weighed(inputs, self.launched_times)
            if plan.decision.verdict == "replayed":
                return self._record(inputs, plan)
            return self._call_settled(inputs, plan.decision)
        finally:
            self._deciding.release()


def _least(measured: Sequence[Callable[[], Times | None]]) -> Times | None:
    known = [found for times in measured if (found := times()) is not None]
    if not known or len(known) < len(measured):
        return None
    return Times(
        min(times.host_us for times in known),
        min(times.elapsed_us for times in known),
        all(times.is_idle_before for times in known),
    )


def _never() -> bool:
    return False

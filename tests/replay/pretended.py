"""A recorder that pretends: what it has recorded is run again by the processor, into the memory of the recording."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.replay.held import HeldAddresses
from compiler.replay.inputs import Call, CannotRecord, addresses_of
from compiler.replay.price import Times
from compiler.replay.replayed import Choice, Facts, ReplayedCall
from compiler.runtime.host.launcher import address_test

HOST_BOUND = Times(host_us=500.0, elapsed_us=520.0)


class PretendedRecording:
    def __init__(self, call: Call, inputs: list[Any], count: Callable[[], None]) -> None:
        self._call, self._count = call, count
        before = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        self.outputs = call(list(inputs))
        given = {value.untyped_storage().data_ptr() for value in inputs if isinstance(value, torch.Tensor)}
        made = [None if _lies_in(value, given) else value for value in self.outputs]
        self._made = [at_address(value) if isinstance(value, torch.Tensor) else value for value in made]
        self._inputs = [at_address(value) if isinstance(value, torch.Tensor) else value for value in inputs]
        for value, old in zip(inputs, before, strict=True):  # recording executes nothing
            if isinstance(value, torch.Tensor) and not torch.equal(value, old):
                value.copy_(old)
        self.replay = self._replay

    def _replay(self) -> None:
        self._count()
        for mine, new in zip(self._made, self._call(list(self._inputs)), strict=True):
            if isinstance(mine, torch.Tensor):
                mine.untyped_storage().copy_(new.untyped_storage())


def _lies_in(value: Any, storages: set[int]) -> bool:
    return isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() in storages


def at_address(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements at the same address, but no user of the memory that torch knows of: what a recording has."""
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return tensor
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    whole = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    made = torch.empty(0, dtype=tensor.dtype)
    return made.set_(whole, tensor.storage_offset(), tensor.shape, tensor.stride())


class PretendedRecorder:
    """`times` are what every watched call is said to have taken; None for a device that is never done."""

    def __init__(self, times: Times | None = HOST_BOUND, fails_with: str | None = None) -> None:
        self.lock = threading.RLock()
        self.held = HeldAddresses()
        self.current_stream = 7
        self.captures = False
        self.recorded = self.replays = 0
        self.free = 2**40
        #: What replays are said to have taken.
        self.replay_times = times
        self._times, self._fails_with = times, fails_with

    def stream(self) -> int:
        return self.current_stream

    def is_capturing(self) -> bool:
        return self.captures

    def timed(self, call: Call, inputs: list[Any]) -> tuple[list[Any], Callable[[], Times | None]]:
        assert not self.captures, "an event that is waited for ends the caller's recording"
        replays = self.replays
        outputs = call(inputs)
        times = self.replay_times if self.replays > replays else self._times
        return outputs, lambda: times

    def record(self, call: Call, inputs: list[Any], is_held: bool) -> PretendedRecording:
        if self._fails_with is not None:
            raise CannotRecord(self._fails_with)
        self.recorded += 1
        return PretendedRecording(call, inputs, self._counted)

    def _counted(self) -> None:
        self.replays += 1

    def free_bytes(self) -> int:
        return self.free

    def pool_bytes(self) -> int:
        return 4096

    def unmoved(self, addresses: Sequence[int]) -> Callable[[list[Any]], bool]:
        builtin = address_test(addresses)
        assert builtin is not None

        def test(inputs: list[Any]) -> bool:
            expected = all(old in (0, new) for old, new in zip(addresses, addresses_of(inputs), strict=True))
            assert builtin(inputs) == expected
            return expected

        return test


def pretended(
    call: Call,
    recorder: PretendedRecorder | None = None,
    written: Sequence[int] = (),
    choice: Choice = "auto",
) -> tuple[ReplayedCall, PretendedRecorder]:
    """`call` as a graph of ten launches on an H200 that is called through a pretended recorder."""
    recorder = recorder or PretendedRecorder()
    return replayed_call(call, Facts(10, 4.37e12, written=frozenset(written)), recorder, choice), recorder


def replayed_call(call: Call, facts: Facts, recorder: PretendedRecorder, choice: Choice = "auto") -> ReplayedCall:
    return ReplayedCall(call, facts, recorder, choice)  # type: ignore[arg-type]  # it answers as a CudaRecorder would

"""The interface of a recorder and of a recording.

`recorder.py` implements it with CUDA, the tests with a fake device whose times they choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from compiler.replay.held import HeldAddresses
from compiler.replay.price import Times

#: A graph as it is called: with one list of inputs, for one of outputs.
Call = Callable[[list[Any]], list[Any]]


class CannotRecord(RuntimeError):
    """The launches were not recorded; says why. Nothing of the call was executed."""


class Recording(Protocol):
    """Launches that can be replayed; `outputs` are what the call gave while it was recorded, in memory that each replay
    writes anew."""

    outputs: list[Any]
    replay: Callable[[], None]


class Recorder(Protocol):
    """Records and times launches on a device; `compiler.replay.recorder` does so with CUDA."""

    #: Held while the memory that replays share is in use.
    lock: AbstractContextManager[Any]
    #: Where recordings of the device give their memory as it is.
    held: HeldAddresses

    def stream(self) -> int:
        """The current stream; less than 0 where another device than the recorder's is the current one."""
        ...

    def is_capturing(self) -> bool:
        """Whether the caller records what is launched on the current stream."""
        ...

    def timed(self, call: Call, inputs: list[Any]) -> tuple[list[Any], Callable[[], Times | None]]:
        """What the call gives, and a function that gives its times, or None as long as the device is not done."""
        ...

    def record(self, call: Call, inputs: list[Any], is_held: bool) -> Recording:
        """Record what the call launches, for replays on the current stream; where it `is_held`, in memory that no other
        recording writes to. Raises `CannotRecord`."""
        ...

    def free_bytes(self) -> int:
        """Free bytes of the device's memory, including what torch caches."""
        ...

    def pool_bytes(self) -> int:
        """What the memory takes from which all recordings for one stream are served."""
        ...

    def unmoved(self, addresses: Sequence[int]) -> Callable[[list[Any]], bool]:
        """A quick test of whether a call's inputs are at these addresses; at any, where one is 0."""
        ...

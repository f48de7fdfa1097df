"""A value that a kernel writes to the host's memory, with a driver that stands in for the GPU and its stream."""

from __future__ import annotations

import ctypes
from threading import Event, Thread, Timer
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import compiler.runtime.host.host_values as host_values
from compiler.runtime.host.host_values import HostValue, host_value

STREAM, NOT_READY, LAUNCH_FAILED = 5, 600, 719
SOON = 0.02


class Driver:
    """Does what was put into the stream at once, or `late`; answers `status` when it is asked for the stream's."""

    def __init__(self) -> None:
        self.late, self.status, self.refuses, self.flags = 0.0, NOT_READY, 0, 0
        self.asked, self.waited = 0, 0
        self.ended = Event()
        integer, pointer = ctypes.c_int, ctypes.c_void_p

        @ctypes.CFUNCTYPE(integer, pointer, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint)
        def write(stream: Any, address: int, value: int, flags: int) -> int:
            assert (stream, flags) == (STREAM, 0)

            def done() -> None:
                ctypes.c_uint32.from_address(address).value = value
                self.ended.set()

            if not self.refuses:
                Timer(self.late, done).start() if self.late else done()
            return self.refuses

        @ctypes.CFUNCTYPE(integer, pointer)
        def query(stream: Any) -> int:
            assert stream == STREAM
            self.asked += 1
            return self.status

        @ctypes.CFUNCTYPE(integer, pointer)
        def synchronise(stream: Any) -> int:
            assert stream == STREAM
            self.waited += 1
            self.ended.wait()
            return 0

        @ctypes.CFUNCTYPE(integer, ctypes.POINTER(ctypes.c_uint))
        def flags_of_context(flags: Any) -> int:
            flags[0] = self.flags
            return 0

        self.functions = SimpleNamespace(
            cuStreamWriteValue32_v2=write, cuStreamQuery=query, cuStreamSynchronize=synchronise,
            cuCtxGetFlags=flags_of_context,
        )  # fmt: skip


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    zeros = torch.zeros
    monkeypatch.setattr(host_values, "cuda_driver", lambda: driver.functions)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM, raising=False)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch, "zeros", lambda *sizes, pin_memory, **how: zeros(*sizes, **how))
    return driver


def way_of(dtype: torch.dtype, is_truth: bool = False) -> HostValue:
    way = host_value(torch.device("cuda", 0), dtype, is_truth)
    assert way is not None
    return way


def passed(way: HostValue, value: Any) -> Any:
    """What the host gets of a value that a kernel writes."""
    place = way.place()
    place.fill_(value)
    way.send(place)
    return way.take(place)


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_is_a_bool_of_python(value: bool, driver: Driver) -> None:
    assert passed(way_of(torch.bool, is_truth=True), value) is value


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(torch.bool, True), (torch.int64, -(2**62)), (torch.float64, 0.1), (torch.bfloat16, 1.5), (torch.complex64, 2j)],
)
def test_a_value_is_a_tensor_that_no_later_call_changes(dtype: torch.dtype, value: Any, driver: Driver) -> None:
    way = way_of(dtype)
    first = passed(way, value)
    assert (first.shape, first.dtype, first.item()) == ((), dtype, value)
    passed(way, 0)
    assert first.item() == value


def test_one_place_does_for_calls_that_follow_each_other(driver: Driver) -> None:
    way = way_of(torch.float32)
    place = way.place()
    way.send(place)
    way.take(place)
    assert way.place() is place
    assert way.place() is not place, "two calls have a place each"


def test_a_value_of_the_call_before_is_not_taken(driver: Driver) -> None:
    way = way_of(torch.bool, is_truth=True)
    passed(way, True)
    place, taken = way.place(), Event()
    driver.late = SOON
    place.fill_(False)
    way.send(place)
    got: list[bool] = []
    Thread(target=lambda: (got.append(way.take(place)), taken.set())).start()
    assert taken.wait(300), "other threads run while one waits, and so does what writes the value"
    assert got == [False] and driver.ended.is_set() and driver.asked and not driver.waited


def test_where_the_process_asked_for_it_the_driver_waits(driver: Driver) -> None:
    driver.flags, driver.late = 4, SOON
    assert passed(way_of(torch.int32), 7).item() == 7
    assert driver.waited == 1 and not driver.asked


@pytest.mark.parametrize("status", [LAUNCH_FAILED, 0])
def test_a_stream_that_ends_without_it_is_an_error(status: int, driver: Driver) -> None:
    way = way_of(torch.bool, is_truth=True)
    driver.late, driver.status = 60.0, status
    place = way.place()
    driver.refuses = 0
    with pytest.raises(RuntimeError, match=f"error {status or NOT_READY}"):
        way.take(place)
    driver.late = 0.0
    assert passed(way, True) is True, "the next call has another place"


def test_a_stream_that_takes_no_order_is_an_error(driver: Driver) -> None:
    way = way_of(torch.bool, is_truth=True)
    driver.refuses = 801
    with pytest.raises(RuntimeError, match="cuStreamWriteValue32 failed with CUDA's error 801"):
        way.send(way.place())


def test_who_wants_to_be_told_of_waits_is_told(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    stream = SimpleNamespace(synchronize=lambda: told.append("waits"))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 1)
    assert passed(way_of(torch.bool, is_truth=True), True) is True
    assert told == ["waits"]

    def refuse() -> None:
        raise RuntimeError("called a synchronizing CUDA operation")

    stream.synchronize = refuse
    with pytest.raises(RuntimeError, match="synchronizing"):
        passed(way_of(torch.bool, is_truth=True), True)


def test_there_is_none_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_values, "cuda_driver", lambda: None)
    assert host_value(torch.device("cuda", 0), torch.bool, True) is None

"""A seed that the host works out and the stream writes, with a driver that writes to the host's memory."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import compiler.runtime.host.seeds as seeds
from compiler.runtime.host.seeds import END, LOWEST, by_kernel, seed_drawer

#: The first two words that Random123's own test vectors give for Philox 4x32-10 with a key and a counter of zeros.
FIRST_BITS = 0x6627E8D5E169C58D
NO_STREAM = 5


class Generator:
    """As much of a GPU's generator as is asked."""

    def __init__(self, seed: int) -> None:
        self.seed, self.offset = seed, 0

    def initial_seed(self) -> int:
        return self.seed

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> None:
        self.offset = offset


class Driver:
    def __init__(self) -> None:
        self.is_recording, self.refuses, self.written = False, 0, 0
        integer, pointer, long = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64

        @ctypes.CFUNCTYPE(integer, pointer, long, long, ctypes.c_uint)
        def write(stream: Any, address: int, value: int, flags: int) -> int:
            assert (stream, flags) == (NO_STREAM, 0)
            if self.refuses:
                return self.refuses
            ctypes.c_uint64.from_address(address).value = value
            self.written += 1
            return 0

        @ctypes.CFUNCTYPE(integer, pointer, ctypes.POINTER(integer))
        def is_capturing(stream: Any, status: Any) -> int:
            status[0] = int(self.is_recording)
            return 0

        self.functions = SimpleNamespace(cuStreamWriteValue64_v2=write, cuStreamIsCapturing=is_capturing)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    monkeypatch.setattr(seeds, "cuda_driver", lambda: driver.functions)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: NO_STREAM, raising=False)
    return driver


def drawer(generator: Generator, count: int, monkeypatch: pytest.MonkeyPatch) -> seeds.Draw:
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    return seed_drawer(torch.device("cuda", 0), count)


def test_it_is_that_of_the_generators_sequence(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator(0)
    draw, drawn = drawer(generator, 1, monkeypatch), torch.zeros(1, dtype=torch.int64)
    draw(drawn)
    first = drawn.item()
    assert first == FIRST_BITS - 2**63
    assert generator.offset == 4
    draw(drawn)
    assert generator.offset == 8 and drawn.item() != first
    generator.offset = 0
    draw(drawn)
    assert drawn.item() == first
    generator.seed, generator.offset = 2**64 - 1, 2**40
    draw(drawn)
    assert drawn.item() != first and driver.written == 4


@pytest.mark.parametrize("why", ["recording", "refused"])
def test_else_torch_draws_it(why: str, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator(7)
    draw, drawn = drawer(generator, 1, monkeypatch), torch.zeros(1, dtype=torch.int64)
    driver.is_recording, driver.refuses = why == "recording", 801 * (why == "refused")
    torch.manual_seed(3)
    draw(drawn)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.randint(LOWEST, END, [1]))
    assert generator.offset == 0 and driver.written == 0


def test_several_are_drawn_by_a_kernel(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawer(Generator(0), 2, monkeypatch) is by_kernel
    assert seed_drawer(torch.device("cpu"), 1) is by_kernel

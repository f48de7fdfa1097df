"""Whoever explores beside others waits for its turn to time, and the wait is nobody's time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from compiler.lease import TimingTurns
from compiler.options import Options, Timing
from compiler.pipeline import explore

SOURCE = """
import torch
f = torch.compile(lambda x: x.sin() + 1)
f(torch.ones(64))
"""
WAIT_SECONDS = 2.0


class Turns:
    """A lease that is waited for, and notes what was published before it was taken."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.taken: list[list[str]] = []
        self.is_held = False

    @contextmanager
    def lease(self) -> Iterator[None]:
        assert not self.is_held
        time.sleep(WAIT_SECONDS)
        self.taken.append(list(self.stages))
        self.is_held = True
        yield
        self.is_held = False


def test_times_are_taken_in_a_turn_and_waiting_counts_for_nothing() -> None:
    turns = Turns()
    options = Options(timing=Timing(max_seconds=0.1), max_seconds=600)
    began = time.perf_counter()
    report = explore(SOURCE, options, lambda report: turns.stages.append(report.stages[-1].name), lease=turns.lease)
    elapsed = time.perf_counter() - began
    assert report.status == "ok", report.error
    assert report.timing is not None
    before = ["capture", "lower", "schedule", "codegen", "run"]
    assert turns.taken == [before, [*before, "measure"]], "for the stages measure and profile alone"
    assert not turns.is_held
    assert sum(stage.ms for stage in report.stages) <= 1e3 * (elapsed - WAIT_SECONDS) + 1


def test_what_is_not_timed_waits_for_nobody() -> None:
    turns = Turns()
    report = explore(SOURCE, Options(timing=Timing(enabled=False)), lease=turns.lease)
    assert report.status == "ok" and turns.taken == []


def test_a_turn_within_a_turn_is_part_of_it() -> None:
    turns = Turns()
    mine = TimingTurns(turns.lease)
    with mine.turn(), mine.turn():
        assert turns.is_held
    assert len(turns.taken) == 1 and not turns.is_held


def test_a_turn_is_given_back_when_what_is_timed_fails() -> None:
    given_back = []

    @contextmanager
    def lease() -> Iterator[None]:
        try:
            yield
        finally:
            given_back.append(True)

    mine = TimingTurns(lease)
    for _ in range(2):
        try:
            with mine.turn():
                raise ValueError
        except ValueError:
            continue
    assert given_back == [True, True]

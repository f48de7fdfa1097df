"""A background task that fails is told of as long as it does not work, and no longer."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable

import pytest

from server import logs
from server.supervised import Supervised

pytestmark = pytest.mark.asyncio


async def until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_a_task_that_ends_only_with_the_program_works_again_after_a_failure() -> None:
    calls = 0

    async def step() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("it was killed")
        await asyncio.Event().wait()

    tasks = Supervised()
    tasks.forever("worker", step)
    await until(lambda: tasks.problems() == ["the task 'worker' fails: OSError: it was killed"])
    await until(lambda: not tasks.problems())
    assert (calls, tasks.states["worker"].restarts) == (2, 1)
    await tasks.stop()


async def test_a_task_that_fails_each_time_is_told_of_and_tried_again() -> None:
    async def step() -> None:
        raise OSError("no")

    tasks = Supervised()
    tasks.forever("store", step)
    await until(lambda: tasks.states["store"].restarts > 2)
    assert tasks.problems() == ["the task 'store' fails: OSError: no"]
    await tasks.stop()


@pytest.mark.parametrize("failure", [ValueError("I/O operation on closed file"), BrokenPipeError("no reader")])
async def test_a_task_is_tried_again_also_where_its_failures_cannot_be_logged(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise failure

    async def step() -> None:
        raise OSError("no")

    monkeypatch.setattr(sys, "stderr", Broken())
    logs.configure("json")
    tasks = Supervised()
    tasks.forever("store", step)
    await until(lambda: tasks.states["store"].restarts > 2)
    assert tasks.problems() == ["the task 'store' fails: OSError: no"]
    await tasks.stop()

"""Background tasks that do not end: one that fails is logged and started again, sooner at first and later after each
failure, and `problems` says so as long as it does not work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

log = structlog.get_logger(__name__)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
_WORKS_AFTER_SECONDS = 1.0
"""A step that has gone on for so long works: some end only with the program."""


@dataclass
class TaskState:
    """How one task does. `problem` is None while it works."""

    name: str
    problem: str | None = None
    restarts: int = 0
    failures: int = 0
    """In a row, since it last worked for a while."""

    def work(self) -> None:
        self.problem = None

    def forget_failures(self) -> None:
        self.failures = 0


class Supervised:
    """The background tasks of one program."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.states: dict[str, TaskState] = {}

    def forever(
        self, name: str, step: Callable[[], Awaitable[None]], expected: tuple[type[Exception], ...] = ()
    ) -> None:
        """Calls `step` again and again, also after it has failed: it waits by itself for what there is to do. Of a
        failure that is `expected` its sentence is logged, of any other its traceback."""
        self.states[name] = TaskState(name)
        self._tasks.append(asyncio.create_task(self._repeat(self.states[name], step, expected), name=name))

    async def _repeat(
        self, state: TaskState, step: Callable[[], Awaitable[None]], expected: tuple[type[Exception], ...]
    ) -> None:
        while True:
            try:
                await _run(state, step)
            except Exception as failure:
                state.failures += 1
                state.restarts += 1
                state.problem = told(failure)
                pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(state.failures - 1, 10))
                traceback = {} if isinstance(failure, expected) else {"exc_info": failure}
                log.error("task_failed", task=state.name, problem=state.problem, again_in_seconds=pause, **traceback)
                await asyncio.sleep(pause)

    def problems(self) -> list[str]:
        """What does not work now, a sentence for each task, without a full stop."""
        return [f"the task {state.name!r} fails: {state.problem}" for state in self.states.values() if state.problem]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _run(state: TaskState, step: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    timers = (
        loop.call_later(_WORKS_AFTER_SECONDS, state.work),
        loop.call_later(_LONGEST_PAUSE_SECONDS, state.forget_failures),
    )
    try:
        await step()
    finally:
        for timer in timers:
            timer.cancel()
    state.work()
    state.forget_failures()


def told(failure: Exception) -> str:
    """The first line of it, without what a statement was about: that may be a snippet."""
    lines = str(failure).splitlines() or ["no message"]
    return f"{type(failure).__name__}: {lines[0][:200]}"

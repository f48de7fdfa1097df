"""The events of one exploration, numbered, kept, and followed by any number of readers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from compiler.report import Report

EventName = Literal["queued", "stage", "log", "done"]


@dataclass(frozen=True)
class Event:
    """`number` counts from 1 within the exploration and is the id by which a reader resumes; `data` is JSON."""

    number: int
    name: EventName
    data: str


class EventLog:
    """Append-only. Readers see every event after the number they name, those to come included, up to `done`."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._changed = asyncio.Condition()

    async def append(self, name: EventName, data: dict[str, Any] | str) -> None:
        """`data` is given as a dict, or as JSON text where that is at hand already."""
        async with self._changed:
            text = data if isinstance(data, str) else json.dumps(data)
            self._events.append(Event(len(self._events) + 1, name, text))
            self._changed.notify_all()

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """A reader that has seen everything still gets `done` again: otherwise it would wait, reconnect, and wait."""
        # A number beyond the last event is of an earlier run of the same exploration.
        position = min(after, len(self._events))
        while True:
            async with self._changed:
                await self._changed.wait_for(partial(self._has_news, position))
                fresh = self._events[position:] or self._events[-1:]
            for event in fresh:
                yield event
                if event.name == "done":
                    return
            position = fresh[-1].number

    def _has_news(self, position: int) -> bool:
        is_over = bool(self._events) and self._events[-1].name == "done"
        return is_over or len(self._events) > position


def stage_data(report: Report, position: int, body: str) -> str:
    """The data of a stage event, from the report's JSON `body`: the report can be large and is not made twice."""
    return f'{{"stage":{report.stages[position].model_dump_json()},"report":{body}}}'


def replay(report: Report, body: str, after: int = 0) -> list[Event]:
    """The events of an exploration that finished long ago, made again from its stored report."""
    stages = [
        Event(position + 1, "stage", stage_data(report, position, body)) for position in range(len(report.stages))
    ]
    done = Event(len(stages) + 1, "done", json.dumps({"status": report.status}))
    return [*stages[after:], done]

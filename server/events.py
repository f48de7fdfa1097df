"""The events of one exploration, numbered, kept while it is under way, and followed by any number of readers.

An id is `attempt-number`. Numbers grow with the milliseconds since the job was queued, so that a web that is started
again goes on above what the one before it has told, and a reader never takes an event for one that it has seen. Of a
finished exploration the events are made again from its report: their numbers end with that of the event that told of
the end when it was live.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from server.wire import parts
from server.wire.parts import SERVICE_FIELDS

EventName = Literal["queued", "started", "stage", "log", "done"]

_ID = re.compile(r"(\d{1,9})-(\d{1,15})")
NOT_IN_STAGES = frozenset({f"/{name}" for name in SERVICE_FIELDS} | {"/status"})
"""Parts that no event of a stage tells of: they are the service's own, and last."""


@dataclass(frozen=True, order=True)
class EventId:
    """`attempt` counts from 1, and so does `number` within all attempts at one request."""

    attempt: int
    number: int

    def __str__(self) -> str:
        return f"{self.attempt}-{self.number}"


def event_id(text: str | None) -> EventId | None:
    """What a reader names as the last event it saw; None for what is no id of ours."""
    found = _ID.fullmatch(text or "")
    return None if found is None else EventId(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class Event:
    """`data` is JSON on one line."""

    id: EventId
    name: EventName
    data: str


MOST_CHANGED_BYTES = 4 * 1024 * 1024
"""Of the parts that one event brings. Each reader takes memory for them; the report itself has what is left out."""


class EventLog:
    """The events of one job as this web sees it. Readers see every event after the id that they name, up to `done`."""

    def __init__(self, queued_at: float) -> None:
        self._queued_at = queued_at
        self._events: list[Event] = []
        self._last: EventId | None = None
        self._changed = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return bool(self._events) and self._events[-1].name == "done"

    def next_number(self) -> int:
        milliseconds = int((time.time() - self._queued_at) * 1000)
        return max(1, milliseconds, (self._last.number + 1) if self._last is not None else 1)

    def append(self, attempt: int, name: EventName, data: dict[str, Any] | str, number: int | None = None) -> None:
        """`data` is a dict, or JSON text where that is at hand already; `number` the event's, where that is settled."""
        if self._last is not None and self._last.attempt != attempt:
            # Nothing that an earlier attempt told holds any longer.
            self._events.clear()
        text = data if isinstance(data, str) else json.dumps(data)
        self._last = EventId(attempt, self.next_number() if number is None else number)
        self._events.append(Event(self._last, name, text))
        self._changed.set()
        self._changed = asyncio.Event()

    def last(self, name: EventName) -> Event | None:
        return next((event for event in reversed(self._events) if event.name == name), None)

    async def follow(self, after: EventId | None = None) -> AsyncIterator[Event]:
        """A reader that has seen everything still gets `done` again: otherwise it would wait, reconnect, and wait."""
        seen = after or EventId(0, 0)
        while True:
            changed = self._changed
            for event in [event for event in self._events if event.id > seen]:
                yield event
                if event.name == "done":
                    return
                seen = max(seen, event.id)
            if self.is_over:
                yield self._events[-1]
                return
            if changed is self._changed:
                await changed.wait()


def stage_data(stage: bytes, changed: bytes) -> str:
    """The data of a stage event: the stage, and the parts that changed with it, by their pointers. Both are JSON."""
    return f'{{"stage":{stage.decode()},"changed":{changed.decode()}}}'


def replay(report: Mapping[str, Any], attempt: int, last_event: int, after: EventId | None) -> list[Event]:
    """The events of an exploration that is done, made again from its stored `report`, of any version.

    The last stage brings all parts where they are not too many, the stages before it only the list of stages: what came
    when is not known any more.
    """
    stages = [stage for stage in report.get("stages", ()) if isinstance(stage, dict)]
    events = []
    for place, stage in enumerate(stages):
        is_last = place == len(stages) - 1
        told = {"/stages": stages[: place + 1]}
        number = last_event - len(stages) + place
        data = _stage({"stage": stage, "changed": _parts_of(report) if is_last else told})
        if len(data) > MOST_CHANGED_BYTES:
            data = _stage({"stage": stage, "changed": told})
        events.append(Event(EventId(attempt, number), "stage", data))
    done = Event(EventId(attempt, last_event), "done", json.dumps({"status": report.get("status")}))
    # An earlier attempt told of another report, and a later one than this is of no job that is known here.
    is_of_this = after is not None and after.attempt == attempt
    return [*(event for event in events if not is_of_this or event.id > after), done]  # type: ignore[operator]


def _stage(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"))


def _parts_of(report: Mapping[str, Any]) -> dict[str, Any]:
    graphs: Iterable[Any] = report.get("graphs", ())
    found = {f"/{name}": value for name, value in report.items() if name != "graphs"}
    listed = list(graphs)
    found[parts.GRAPHS] = len(listed)
    for number, graph in enumerate(listed):
        found.update({f"/graphs/{number}/{name}": value for name, value in graph.items()})
    return {name: value for name, value in found.items() if name not in NOT_IN_STAGES}

"""Following an exploration: the order of its events, resuming, and reading them again later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.events import EventLog
from tests.server.conftest import Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_events_tell_the_whole_way(service: Service) -> None:
    report = await service.explore("import sys; sys.__stdout__.write('raw'); sys.__stdout__.flush(); verdict = 'way'")
    events = await service.events(report["id"])
    assert [event["event"] for event in events if event["event"] != "log"] == ["queued"] + ["stage"] * 3 + ["done"]
    assert [event["id"] for event in events] == [str(number + 1) for number in range(len(events))]
    stages = [json.loads(event["data"]) for event in events if event["event"] == "stage"]
    assert [data["stage"]["name"] for data in stages] == ["capture", "run", "compare"]
    assert all(data["report"]["status"] == "running" for data in stages)
    assert [len(data["report"]["stages"]) for data in stages] == [1, 2, 3]
    assert json.loads(events[-1]["data"]) == {"status": "ok"}
    logs = [json.loads(event["data"])["text"] for event in events if event["event"] == "log"]
    assert "".join(logs) == "raw"


async def test_a_reader_resumes_after_the_last_event_it_saw(service: Service) -> None:
    report = await service.explore("verdict = 'resumed'")
    everything = await service.events(report["id"])
    for seen in range(len(everything)):
        rest = await service.events(report["id"], after=str(seen))
        assert rest == everything[seen:]


async def test_a_reader_that_saw_everything_is_told_again_that_it_is_over(service: Service) -> None:
    report = await service.explore("verdict = 'over'")
    for after in ("5", "999", "nonsense"):
        assert (await service.events(report["id"], after=after))[-1]["event"] == "done"


async def test_events_of_an_earlier_life_are_made_again_from_the_store(tmp_path: Path) -> None:
    async with running_service(tmp_path) as first:
        report = await first.explore("verdict = 'kept'")
    async with running_service(tmp_path) as second:
        events = await second.events(report["id"])
        assert [event["event"] for event in events] == ["stage"] * 3 + ["done"]
        resumed = await second.events(report["id"], after="2")
        assert [event["event"] for event in resumed] == ["stage", "done"]


async def test_positions_in_the_queue_move_up(service: Service) -> None:
    ids = []
    for number in range(3):
        source = f"import time; time.sleep(1)  # {number}"
        answer = await service.client.post("/api/v1/explorations", json={"source": source, "cache": "refresh"})
        ids.append(answer.json()["id"])
    events = await service.events(ids[-1])
    positions = [json.loads(event["data"])["position"] for event in events if event["event"] == "queued"]
    assert positions == sorted(positions, reverse=True)
    assert positions[0] > positions[-1]


async def test_an_event_log_serves_readers_that_come_at_any_time() -> None:
    log = EventLog()
    await log.append("queued", {"position": 1})
    await log.append("done", {"status": "ok"})
    assert [event.name async for event in log.follow()] == ["queued", "done"]
    assert [event.number async for event in log.follow(1)] == [2]

"""Following an exploration: the order of its events, what they carry, resuming, and reading them again later."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from server.events import EventId, EventLog, event_id
from tests.server.conftest import Gate, Service, parse_events, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


def applied(events: list[dict[str, str]]) -> dict[str, Any]:
    """The report that a reader has who applies what the stages bring."""
    parts: dict[str, Any] = {}
    for event in events:
        if event["event"] == "stage":
            parts |= json.loads(event["data"])["changed"]
    return parts


def ids(events: list[dict[str, str]]) -> list[EventId]:
    found = [event_id(event["id"]) for event in events]
    assert None not in found
    return [id for id in found if id is not None]


async def test_events_tell_the_whole_way(service: Service) -> None:
    source = "import sys, time; sys.__stdout__.write('raw'); sys.__stdout__.flush(); time.sleep(0.5); verdict = 'way'"
    asked_at = time.time()
    id = await service.start(source)
    events = await service.events(id)
    names = [event["event"] for event in events if event["event"] != "log"]
    assert names == ["queued", "started", *["stage"] * 3, "done"]
    assert ids(events) == sorted(set(ids(events))), "numbers grow"
    assert {id.attempt for id in ids(events)} == {1}
    assert json.loads(events[0]["data"]) == {"position": 0}
    started = json.loads(events[1]["data"])
    assert started["wall_seconds"] == 60.0 and asked_at <= started["started_at"] <= time.time()
    stages = [json.loads(event["data"]) for event in events if event["event"] == "stage"]
    assert [data["stage"]["name"] for data in stages] == ["capture", "run", "compare"]
    assert [len(data["changed"]["/stages"]) for data in stages] == [1, 2, 3]
    assert json.loads(events[-1]["data"]) == {"status": "ok"}
    logs = [json.loads(event["data"])["text"] for event in events if event["event"] == "log"]
    assert "".join(logs) == "raw"


async def test_a_stage_brings_only_what_it_changed(service: Service) -> None:
    id = await service.start("import time; time.sleep(0.3); print('printed once')")
    events = await service.events(id)
    stages = [json.loads(event["data"])["changed"] for event in events if event["event"] == "stage"]
    assert [("/output" in changed) for changed in stages] == [False, True, False]
    report = (await service.client.get(f"/api/v1/explorations/{id}")).json()
    told = applied(events)
    assert told["/output"] == report["output"] == "printed once\n"
    assert told["/stages"] == report["stages"]


async def test_a_reader_resumes_after_the_last_event_it_saw(service: Service) -> None:
    id = await service.start("import time; time.sleep(1.5); verdict = 'resumed'")
    await service.until_started(id)
    async with service.client.stream("GET", f"/api/v1/explorations/{id}/events") as _:
        pass  # a reader that goes away at once
    everything = await service.events(id)
    report = (await service.client.get(f"/api/v1/explorations/{id}")).json()
    for seen in range(len(everything)):
        rest = await service.events(id, after=everything[seen]["id"])
        assert rest[-1] == everything[-1], "the end has the id that it had"
        assert all(id > ids(everything)[seen] for id in ids(rest)[:-1])
        assert applied(everything[: seen + 1] + rest)["/stages"] == report["stages"], "nothing is missing"


async def test_a_reader_that_saw_everything_is_told_again_that_it_is_over(service: Service) -> None:
    report = await service.explore("verdict = 'over'")
    last = (await service.events(report["id"]))[-1]["id"]
    assert [event["event"] for event in await service.events(report["id"], after=last)] == ["done"]
    for after in ("999-999", "0-0", "nonsense", "7", "1-"):
        assert (await service.events(report["id"], after=after))[-1]["event"] == "done"


async def test_events_of_an_earlier_life_are_made_again_from_the_store(tmp_path: Path) -> None:
    async with running_service(tmp_path) as first:
        id = await first.start("import time; time.sleep(0.3); print('kept')")
        live = await first.events(id)
        report = (await first.client.get(f"/api/v1/explorations/{id}")).json()
    async with running_service(tmp_path) as second:
        events = await second.events(id)
        assert [event["event"] for event in events] == ["stage"] * 3 + ["done"]
        assert applied(events)["/output"] == report["output"] == "kept\n"
        assert (events[-1]["id"], events[-1]["data"]) == (live[-1]["id"], live[-1]["data"])
        resumed = await second.events(id, after=events[1]["id"])
        assert [event["event"] for event in resumed] == ["stage", "done"]


async def test_positions_in_the_queue_move_up(service: Service, tmp_path: Path) -> None:
    gates = [Gate(tmp_path / str(number)) for number in range(3)]
    started = [await service.start(gate.wait) for gate in gates]
    await service.until_started(started[0])
    await until_position(service, started[2], 1)
    gates[0].open()
    await until_position(service, started[2], 0)
    gates[1].open()
    gates[2].open()
    events = await service.events(started[2])
    positions = [json.loads(event["data"])["position"] for event in events if event["event"] == "queued"]
    assert positions == sorted(positions, reverse=True)
    assert positions[0] in (1, 2), "those before it: it does not count itself, nor the one that runs"
    assert positions[-1] == 0


async def until_position(service: Service, id: str, position: int) -> None:
    log = service.app.state.web.explorations.watches.find(id).log
    async with asyncio.timeout(240):
        while json.loads(log.last("queued").data) != {"position": position}:
            await asyncio.sleep(0.01)


async def test_a_report_tells_how_long_it_runs_and_may_run(service: Service) -> None:
    id = await service.start("import time; time.sleep(600)", cache="refresh")
    waiting = await service.start("waits = 'behind it'")
    report = await service.until(id, lambda report: report["observed"] is not None)
    first = report["observed"]
    assert report["status"] == "running" and first["wall_limit_seconds"] == 60.0 and first["ending"] == ""
    later = await service.until(id, lambda report: report["observed"]["wall_seconds"] > first["wall_seconds"] + 0.1)
    assert later["observed"]["attempt"] == 1
    of_waiting = (await service.client.get(f"/api/v1/explorations/{waiting}")).json()
    assert (of_waiting["status"], of_waiting["observed"]) == ("running", None), "it has not begun"
    await until_position(service, waiting, 0)  # what runs is not before it, nor is it before itself
    done = (await service.client.delete(f"/api/v1/explorations/{id}")).json()
    assert done["observed"]["wall_limit_seconds"] == 60.0 and done["observed"]["ending"] == "cancelled"


async def test_what_had_ended_before_the_time_limit_stays(tmp_path: Path) -> None:
    async with running_service(tmp_path, wall_seconds=10) as service:
        id = await service.start("print('kept')\nimport time; time.sleep(0.1)\nstall = 'compare'")
        events = await service.events(id)
        report = (await service.client.get(f"/api/v1/explorations/{id}")).json()
    assert report["status"] == "timeout" and json.loads(events[-1]["data"]) == {"status": "timeout"}
    assert [stage["name"] for stage in report["stages"]] == ["capture", "run"] and report["output"] == "kept\n"
    assert applied(events)["/output"] == "kept\n", "followers have it too"
    assert "had ended: capture, run. Missing: lower, schedule, codegen, measure, compare." in report["error"]["message"]


async def test_a_follower_that_leaves_ends_it_for_nobody_else(service: Service) -> None:
    id = await service.start("import time; time.sleep(600)  # followed", cache="refresh")
    address = f"/api/v1/explorations/{id}"
    await service.until(id, lambda report: report["observed"] is not None)
    watch = service.app.state.web.explorations.watches.find(id)
    others = asyncio.create_task(service.client.get(f"{address}/events?follower=second"))
    while not watch.followers:
        await asyncio.sleep(0.01)
    left = await service.client.delete(f"{address}?follower=first")
    assert (left.status_code, left.json()["status"]) == (202, "running")
    ended = await service.client.delete(f"{address}?follower=second")
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    assert parse_events((await others).text)[-1]["event"] == "done"


async def test_a_refreshed_exploration_goes_on_under_the_next_attempt(service: Service) -> None:
    source = "import time; time.sleep(0.3)  # again"
    first = await service.events(await service.start(source))
    second = await service.events(await service.start(source, cache="refresh"), after=first[-1]["id"])
    assert [event["event"] for event in second if event["event"] == "stage"] == ["stage"] * 3
    assert {id.attempt for id in ids(second)} == {2}


async def test_an_event_log_serves_readers_that_come_at_any_time() -> None:
    log = EventLog(queued_at=0.0)
    log.append(1, "queued", {"position": 1})
    log.append(1, "done", {"status": "ok"})
    everything = [event async for event in log.follow()]
    assert [event.name for event in everything] == ["queued", "done"]
    assert [event.name async for event in log.follow(everything[0].id)] == ["done"]
    assert [event.name async for event in log.follow(everything[1].id)] == ["done"]


async def test_numbers_are_never_given_again_after_a_restart() -> None:
    before, after = EventLog(queued_at=0.0), EventLog(queued_at=0.0)
    for _ in range(3):
        before.append(1, "queued", {"position": 1})
    last = before.last("queued")
    assert last is not None
    while after.next_number() <= last.id.number:
        pass  # the process that comes next starts at least a few milliseconds later
    after.append(1, "queued", {"position": 0})
    assert [event.data async for event in _first(after, last.id)] == ['{"position": 0}']


async def _first(log: EventLog, seen: EventId) -> Any:
    async for event in log.follow(seen):
        yield event
        return

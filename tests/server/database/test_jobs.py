"""The durable queue, on each database: nothing is lost, nothing is done twice, and everybody has their turn."""

from __future__ import annotations

import asyncio
import gzip
import time

import pytest

from compiler.options import Options
from server.database.engine import Database
from server.database.jobs import JobTable, in_turn
from server.database.new_jobs import Limits, QueueFull
from server.database.reports import Reports, Stored
from tests.server.database.made import BUILD, CPU, GPU, ROOM, enqueue, finished, lease, report_of, wanted

pytestmark = pytest.mark.asyncio


async def test_a_job_goes_its_way(database: Database) -> None:
    table, reports = JobTable(database, "web-1"), Reports(database, 0)
    job = await enqueue(table, "a")
    assert (job.state, job.attempt, job.tries, job.name) == ("queued", 1, 1, "a.1")
    assert (job.options, job.profile, job.source) == (Options(), CPU, "source of a")
    taken = await lease(table)
    assert taken is not None and (taken.id, taken.state, taken.owner) == ("a", "leased", "web-1")
    assert await lease(table) is None
    stored = await table.finish(taken, finished(taken))
    assert isinstance(stored, Stored) and stored == await reports.get("a")
    assert gzip.decompress(stored.gzipped) == stored.body == report_of(taken).model_dump_json().encode()
    done = await table.get("a")
    assert done is not None and done.state == "done" and done.source == ""


async def test_whoever_asks_for_the_same_joins_the_job_that_is_there(database: Database) -> None:
    tables = [JobTable(database, f"web-{number}") for number in range(3)]
    found = await asyncio.gather(
        *(table.enqueue(wanted("same"), ROOM, 5.0, is_refresh=False) for table in tables for _ in range(4))
    )
    assert sum(one.before is not None for one in found if not isinstance(one, Stored)) == 1, "one made it"
    leased = await asyncio.gather(*(lease(table) for table in tables))
    assert [job is not None for job in leased].count(True) == 1, "one took it"


async def test_a_stored_report_is_the_answer_also_at_the_last_moment(database: Database) -> None:
    table = JobTable(database, "web")
    await enqueue(table, "a")
    job = await lease(table)
    assert job is not None
    await table.finish(job, finished(job))
    again = await table.enqueue(wanted("a"), ROOM, 5.0, is_refresh=False)
    assert isinstance(again, Stored)
    refreshed = await table.enqueue(wanted("a"), ROOM, 5.0, is_refresh=True)
    assert not isinstance(refreshed, Stored) and refreshed.job.attempt == 2, "attempts never count down"


async def test_jobs_of_another_profile_or_build_are_left_alone(database: Database) -> None:
    table = JobTable(database, "web")
    await enqueue(table, "gpu", profile=GPU)
    await enqueue(table, "old", build="another build")
    assert await lease(table) is None
    found = await lease(table, profile=GPU)
    assert found is not None and found.id == "gpu"


async def test_clients_take_turns(database: Database) -> None:
    table = JobTable(database, "web")
    for number in range(4):
        await enqueue(table, f"many-{number}", "many")
    await enqueue(table, "few-0", "few")
    await enqueue(table, "one-0", "one")
    expected = ["many-0", "few-0", "one-0", "many-1", "many-2", "many-3"]
    assert await table.queue() == expected
    order = []
    while (job := await lease(table)) is not None:
        order.append(job.id)
        if job.id == "many-1":
            await enqueue(table, "few-1", "few")
            expected.insert(4, "few-1")
    assert order == expected


async def test_a_job_with_a_slot_kept_for_it_is_leased_as_it_is_written_down(database: Database) -> None:
    table = JobTable(database, "web-1")
    found = await table.enqueue(wanted("a", "first"), ROOM, 5.0, is_refresh=False, lease_seconds=60.0)
    assert not isinstance(found, Stored)
    assert (found.job.state, found.job.owner, found.before) == ("leased", "web-1", 0)
    assert found.job.lease_until is not None and found.job.lease_until > found.job.queued_at + 50
    assert await lease(table) is None and await table.renew([found.job], 60.0) == (set(), set())
    await enqueue(table, "b", "first")
    await enqueue(table, "c", "second")
    assert await table.queue() == ["c", "b"], "that was a turn of the first client's"
    again = await table.enqueue(wanted("a"), ROOM, 5.0, is_refresh=False, lease_seconds=60.0)
    assert not isinstance(again, Stored) and again.before is None and again.job.owner == "web-1"


async def test_a_kept_slot_is_not_given_past_those_who_wait(database: Database) -> None:
    table = JobTable(database, "web")
    await enqueue(table, "gpu", profile=GPU)
    await enqueue(table, "waits", "somebody")
    late = await table.enqueue(wanted("late", "other"), ROOM, 5.0, is_refresh=False, lease_seconds=60.0)
    assert not isinstance(late, Stored) and (late.job.state, late.before) == ("queued", 2)
    taken = await lease(table)
    assert taken is not None and taken.id == "waits"


async def test_one_that_is_not_admitted_leaves_nothing(database: Database) -> None:
    table = JobTable(database, "web")

    def admit() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await table.enqueue(wanted("a"), ROOM, 5.0, is_refresh=False, lease_seconds=60.0, admit=admit)
    assert await table.get("a") is None
    await enqueue(table, "a")
    joined = await table.enqueue(wanted("a"), ROOM, 5.0, is_refresh=False, admit=admit)
    assert not isinstance(joined, Stored) and joined.before is None, "who joins needs no leave"


async def test_order_of_turns() -> None:
    waiting = [("a1", "a", 5.0), ("a2", "a", 5.0), ("b1", "b", 2.0), ("c1", "c", 0.0), ("b2", "b", 2.0)]
    assert in_turn(waiting) == ["c1", "b1", "a1", "b2", "a2"]
    assert in_turn([]) == []


async def test_a_full_queue_says_of_whom(database: Database) -> None:
    table = JobTable(database, "web")
    limits = Limits(waiting=3, of_one_client=2)
    for number in range(2):
        await enqueue(table, f"own-{number}", "greedy", limits)
    with pytest.raises(QueueFull) as own:
        await enqueue(table, "own-2", "greedy", limits)
    assert (own.value.of, own.value.number) == ("own", 2)
    await enqueue(table, "other", "modest", limits)
    with pytest.raises(QueueFull) as of_all:
        await enqueue(table, "third", "third", limits)
    assert (of_all.value.of, of_all.value.number) == ("all", 3)
    assert await table.get("third") is None, "a refused one leaves nothing"
    assert await lease(table) is not None
    with pytest.raises(QueueFull) as running:
        await enqueue(table, "own-3", "greedy", Limits(3, 2, at_once=2))
    assert (running.value.of, running.value.number) == ("running", 2)


async def test_an_expired_lease_is_the_next_attempt_and_in_the_end_a_failure(database: Database) -> None:
    gone, here = JobTable(database, "gone"), JobTable(database, "here")
    await enqueue(gone, "a")
    for attempt in (1, 2):
        job = await lease(gone, seconds=-1)
        assert job is not None and job.attempt == attempt
        assert await here.expired(2, running=["a"]) == [], "it runs here: only its lease was late"
        over = await here.expired(2, running=[])
        assert [one.attempt for one in over] == ([] if attempt == 1 else [2])
        assert await gone.finish(job, finished(job)) is None or attempt == 2
    found = await here.get("a")
    assert found is not None and (found.attempt, found.tries) == (2, 2)


async def test_a_late_answer_of_an_earlier_attempt_is_passed_over(database: Database) -> None:
    slow, quick = JobTable(database, "slow"), JobTable(database, "quick")
    await enqueue(slow, "a")
    first = await lease(slow, seconds=-1)
    await quick.expired(3, running=[])
    second = await lease(quick)
    assert first is not None and second is not None and second.attempt == 2
    assert await slow.renew([first], 60.0) == ({"a.1"}, set()), "it has lost it"
    assert await slow.finish(first, finished(first, report_of(first, "late"))) is None
    stored = await quick.finish(second, finished(second, report_of(second, "in time")))
    assert stored is not None and stored.unread.report().output == "in time"
    assert await slow.finish(first, finished(first, report_of(first, "late"))) is None


async def test_a_cancel_is_heard_wherever_the_job_is(database: Database) -> None:
    table, other = JobTable(database, "web"), JobTable(database, "other")
    await enqueue(table, "waits")
    await enqueue(table, "runs")
    running = await lease(table)
    assert running is not None and running.id == "waits"
    assert (await other.cancel("waits")) is not None
    assert await table.renew([running], None) == (set(), {"waits.1"})
    await other.cancel("runs")
    assert await lease(table) is None, "what is cancelled is not begun"
    assert [job.id for job in await table.to_end(600.0, BUILD)] == ["runs"]
    assert await table.cancel("unknown") is None


async def test_what_nobody_waits_for_is_named(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table, now = JobTable(database, "web"), time.time()
    await enqueue(table, "unwanted")
    await enqueue(table, "wanted")
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    await table.tell_wanted(["wanted"])
    assert [job.id for job in await table.to_end(1800, BUILD)] == ["unwanted"]


async def test_a_job_given_back_keeps_its_place(database: Database) -> None:
    table = JobTable(database, "web")
    await enqueue(table, "first")
    await enqueue(table, "second")
    job = await lease(table)
    assert job is not None
    await table.give_back(job, has_run=False, counts=False)
    again = await table.get("first")
    assert again is not None and (again.state, again.attempt, again.tries) == ("queued", 1, 1)
    taken = await lease(table)
    assert taken is not None and taken.id == "first"
    await table.give_back(taken, has_run=True, counts=True)
    found = await table.get("first")
    assert found is not None and (found.attempt, found.tries) == (2, 2)

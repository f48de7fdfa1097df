"""One job times at a time. Waiting costs a job nothing, and nobody keeps the lease beyond its own end."""

from __future__ import annotations

import asyncio

import pytest

from server.worker.lease import TimingLease
from tests.worker.harness import Done, Web, eventually

pytestmark = pytest.mark.asyncio

HOLD = "import time, os\nwith lease():\n    os.write(1, b'has it')\n    time.sleep({seconds})\nverdict = 'timed'"


async def has_lease(web: Web, job: str) -> None:
    await web.until(lambda: "has it" in web.jobs[job].output)


async def test_waiting_for_the_lease_is_not_counted(web: Web) -> None:
    limit = 5.0
    holder = await web.begin(HOLD.format(seconds=600))
    await has_lease(web, holder)
    waiter = await web.begin("import os\nos.write(1, b'asks')\n" + HOLD.format(seconds=0), wall_seconds=limit)
    await web.until(lambda: "asks" in web.jobs[waiter].output)
    await asyncio.sleep(limit + 1)  # it would be over its time if the wait were counted
    await web.cancel(holder)
    first, second = await web.done(holder), await web.done(waiter)
    assert second.verdict == "timed"
    assert first.ended is not None and second.ended is not None
    assert first.ended.waited_seconds < second.ended.waited_seconds < second.ended.wall_seconds
    assert second.ended.wall_seconds - second.ended.waited_seconds < limit < second.ended.wall_seconds


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "time.sleep(600)"])
async def test_a_holder_that_ends_frees_it(web: Web, end: str) -> None:
    holder = await web.begin(HOLD.format(seconds=0).replace("time.sleep(0)", f"time.sleep(0.3); {end}"), wall_seconds=8)
    await has_lease(web, holder)
    waiter: Done = await web.run(HOLD.format(seconds=0))
    assert waiter.verdict == "timed"
    await web.done(holder)


async def test_a_job_that_waits_can_be_cancelled(web: Web) -> None:
    holder = await web.begin(HOLD.format(seconds=600))
    await has_lease(web, holder)
    waiter = await web.begin("import os\nos.write(1, b'asks')\nwith lease(): pass")
    await web.until(lambda: "asks" in web.jobs[waiter].output)
    for job in (waiter, holder):
        await web.cancel(job)
        done = await web.done(job)
        assert done.ended is not None and done.ended.ending == "cancelled"
    assert (await web.run(HOLD.format(seconds=0))).verdict == "timed"


async def test_a_flood_of_wishes_ends_the_job_alone(web: Web) -> None:
    flood = "import os\nwhile True: os.write(3, (b't' + bytes(4) + b'u' + bytes(4)) * 1000)"
    ended = (await web.run(flood)).ended
    assert ended is not None and ended.ending == "report_limit"
    assert (await web.run(HOLD.format(seconds=0))).verdict == "timed"


async def test_it_goes_round_in_the_order_of_asking() -> None:
    lease, granted = TimingLease(), []
    holders = [lease.holder(lambda number=number: granted.append(number)) for number in range(3)]  # type: ignore[misc]
    for holder in holders:
        holder.ask()
        holder.ask()
        await asyncio.sleep(0)
    assert await eventually(lambda: granted == [0])
    holders[2].give_back()  # it has nothing to give
    holders[0].give_back()
    assert await eventually(lambda: granted == [0, 1])
    await holders[1].close()
    assert await eventually(lambda: granted == [0, 1, 2])
    await holders[2].close()
    assert not lease.is_held
    assert holders[2].waited_seconds > 0

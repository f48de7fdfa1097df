"""Work in processes apart: what comes back, and what becomes of a process that does not do its work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from server.apart import Apart, Busy, TooLong, WentWrong


@pytest.fixture
def apart() -> Iterator[Apart]:
    made = Apart(1, ("json",), (LookupError,))
    yield made
    made.close()


def test_one_process_does_one_thing_after_another(apart: Apart) -> None:
    assert apart.now(60, sum, [1, 2, 3]) == 6
    assert apart.now(60, max, "ab", key=ord) == "b"
    process = apart.now(60, os.getpid)
    assert process != os.getpid() and apart.now(60, os.getpid) == process


def test_what_is_expected_is_raised_and_what_is_not_quotes_nothing(apart: Apart) -> None:
    with pytest.raises(LookupError, match="a sentence"):
        apart.now(60, exec, "raise LookupError('a sentence')", {})
    with pytest.raises(WentWrong, match="ValueError") as wrong:
        apart.now(60, int, "a secret")
    assert "secret" not in str(wrong.value)
    assert apart.now(60, len, "abc") == 3


def test_after_work_that_cannot_be_sent_the_next_is_done(apart: Apart) -> None:
    first = apart.now(60, os.getpid)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        apart.now(60, lambda: 1)
    assert apart.now(60, os.getpid) != first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_process_that_takes_too_long_or_ends_is_replaced(apart: Apart) -> None:
    process = apart.now(60, os.getpid)
    with pytest.raises(TooLong):
        apart.now(0.2, time.sleep, 600)
    with pytest.raises(WentWrong, match="ended with code 3"):
        apart.now(60, os._exit, 3)
    assert apart.now(60, os.getpid) != process


def test_a_process_that_is_gone_between_two_pieces_of_work_is_replaced(apart: Apart) -> None:
    apart.now(60, len, "")
    apart.close()
    assert apart.now(60, len, "abc") == 3


def test_a_process_that_keeps_much_memory_is_replaced(apart: Apart) -> None:
    process = apart.now(60, os.getpid)
    apart.now(60, exec, "import json; json.kept = b'x' * 300_000_000", {})
    assert apart.now(60, os.getpid) != process


@pytest.mark.asyncio
@pytest.mark.parametrize(("most", "patience"), [(1, None), (2, 0.0)])
async def test_no_more_than_so_many_wait_and_none_longer_than_it_may(most: int, patience: float | None) -> None:
    made = Apart(1, (), most=most, patience=patience)
    try:
        asked = [made.soon("one", 0, 60, time.sleep, 0.5) for _ in range(2)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Busy, type(None)}
        assert await made.soon("one", 0, 60, len, "abc") == 3
    finally:
        made.close()


@contextlib.asynccontextmanager
async def asleep(*made: Apart, client: str = "many", length: int = 0) -> AsyncIterator[None]:
    """While `client` has more asked of the first of them than they have processes, which does not end by itself."""
    asked = [asyncio.create_task(made[0].soon(client, length, 600, time.sleep, 600)) for _ in range(4)]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        for one in made:
            one.close()


@pytest.mark.asyncio
async def test_no_client_has_all_processes_or_all_places() -> None:
    made = Apart(2, (), most=8, patience=30)
    async with asleep(made):
        assert await made.soon("few", 0, 60, len, "abc") == 3
        with pytest.raises(Busy):
            await made.soon("many", 0, 60, len, "abc")


@pytest.mark.asyncio
async def test_what_waits_is_no_more_than_can_be_held() -> None:
    made, length = Apart(2, (), most=64, patience=30), 100 * 1024**2
    async with asleep(made, length=length):
        with pytest.raises(Busy):
            await made.soon("few", length, 60, len, "abc")
        assert await made.soon("few", 0, 60, len, "abc") == 3


@pytest.mark.asyncio
async def test_clients_take_turns() -> None:
    made, done = Apart(1, ()), []

    async def ask(client: str) -> None:
        await made.soon(client, 0, 60, len, "")
        done.append(client)

    try:
        await asyncio.gather(*map(ask, ["many", "many", "many", "few", "few", "one"]))
        assert done == ["many", "few", "one", "many", "few", "many"]
    finally:
        made.close()


@pytest.mark.asyncio
async def test_much_is_read_by_one_process_at_a_time() -> None:
    made, other, length = Apart(2, ()), Apart(1, (), patience=0.5), 3 * 1024**2
    async with asleep(made, other, length=length):
        with pytest.raises(Busy):
            await other.soon("few", length, 60, len, "abc")
        assert await other.soon("few", 0, 60, len, "abc") == 3
    assert await other.soon("few", length, 60, len, "abc") == 3
    other.close()


@pytest.mark.asyncio
async def test_a_process_may_take_more_memory_for_more_that_it_reads(apart: Apart) -> None:
    taking = "bytes(600 * 1024**2)"
    with pytest.raises(WentWrong, match="MemoryError"):
        await apart.soon("one", 0, 60, exec, taking, {})
    await apart.soon("one", 10 * 1024**2, 60, exec, taking, {})

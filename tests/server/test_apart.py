"""Work in processes apart: what comes back, and what becomes of a process that does not do its work."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from collections.abc import Iterator

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
        asked = [made.soon(60, time.sleep, 0.5) for _ in range(2)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Busy, type(None)}
        assert await made.soon(60, len, "abc") == 3
    finally:
        made.close()

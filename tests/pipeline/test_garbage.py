"""What is made while Python does not look for cycles counts as old afterwards, and is still found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import compiler.garbage
from compiler.garbage import garbage_kept


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    gc.unfreeze()
    compiler.garbage._is_frozen = False
    (gc.enable if was_enabled else gc.disable)()


@pytest.mark.parametrize("frozen", [0, 375])  # by Python itself: Python 3.12 begins with so many
def test_what_was_made_within_is_not_gone_through_as_new(frozen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    with garbage_kept():
        made: list[list[int]] = [[] for _ in range(100 * gc.get_threshold()[0])]
        assert gc.get_count()[0] > len(made) // 2
    assert gc.get_count()[0] < gc.get_threshold()[0]


def test_a_cycle_that_was_made_within_is_found_by_the_next_full_search() -> None:
    with garbage_kept():
        cycle = weakref.ref(Cycle())
        assert cycle() is not None
    gc.collect()
    assert cycle() is None


def test_cycles_of_many_compilations_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.garbage, "MOST_KEPT", 1000)
    cycles = []
    for _ in range(20):
        with garbage_kept():
            cycles += [weakref.ref(Cycle()) for _ in range(100)]
    assert 0 < sum(cycle() is not None for cycle in cycles) <= 1000


def test_what_the_user_froze_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with garbage_kept():
        pass
    assert gc.get_freeze_count() > 0.9 * frozen > 0  # a few may have died since, of other threads' for one
    assert gc.isenabled()

"""What Triton makes once in a process is made beside other work, once, and again in a copy of the process."""

from __future__ import annotations

import importlib
import os

import pytest
from triton.runtime.cache import triton_key

from compiler.runtime import preload
from compiler.runtime.triton import setup as triton_setup
from compiler.runtime.triton.setup import begin_setting_up


def test_what_triton_makes_once_is_begun_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(triton_setup, "_thread", None)
    monkeypatch.setattr(triton_setup, "_set_up", lambda: made.append(1))
    threads = [begin_setting_up() for _ in range(3)]
    threads[0].join()
    assert made == [1] and len(set(threads)) == 1


def test_a_copy_of_a_process_sets_triton_up_itself() -> None:
    begin_setting_up().join()
    child = os.fork()
    if child == 0:
        begin_setting_up().join(60)
        os._exit(0 if not begin_setting_up().is_alive() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_process_that_forks_others_knows_the_hash_for_them() -> None:
    triton_key.cache_clear()
    importlib.reload(preload)
    assert triton_key.cache_info().currsize == 1

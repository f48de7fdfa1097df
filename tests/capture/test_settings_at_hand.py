"""A setting that is at hand is the setting: set, patched, deleted, of all threads or of one, as without."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
from torch._dynamo import config
from torch.fx.experimental import _config as sizes

from compiler.capture.shortcuts.settings_at_hand import settings_at_hand


@pytest.fixture(params=[False, True])
def at_hand(request: pytest.FixtureRequest) -> Iterator[bool]:
    with settings_at_hand() if request.param else nullcontext():
        yield request.param


def test_settings_are_at_hand_within_and_nowhere_else() -> None:
    assert "verbose" not in vars(type(config))
    with settings_at_hand():
        assert isinstance(vars(type(config))["verbose"], property)
        with settings_at_hand():
            pass
        assert isinstance(vars(type(config))["verbose"], property)
        assert isinstance(vars(type(sizes))["backed_size_oblivious"], property)
    assert "verbose" not in vars(type(config)) and "backed_size_oblivious" not in vars(type(sizes))


def test_all_settings_are_what_they_were() -> None:
    before = {name: getattr(config, name) for name in vars(config)["_config"] if name.isidentifier()}
    with settings_at_hand():
        assert {name: getattr(config, name) for name in before} == before
        assert config.get_config_copy().keys() <= set(vars(config)["_config"])


def test_who_sets_a_setting_is_seen(at_hand: bool) -> None:
    before = config.recompile_limit
    config.recompile_limit = before + 1
    try:
        assert config.recompile_limit == before + 1
        with config.patch(recompile_limit=3):
            assert config.recompile_limit == 3
            with mock.patch.object(config, "recompile_limit", 4):
                assert config.recompile_limit == 4
            assert config.recompile_limit == 3
        untyped: Any = config  # whose values torch does not check
        with config.patch("verbose", "anything"):
            assert untyped.verbose == "anything"
        assert config.recompile_limit == before + 1
        change = config._make_closure_patcher(recompile_limit=5)
        revert = change()
        assert config.recompile_limit == 5
        revert()
        assert config.recompile_limit == before + 1
    finally:
        config.recompile_limit = before


def test_what_is_set_before_and_within_stays() -> None:
    before = config.recompile_limit
    try:
        config.recompile_limit = 17
        with settings_at_hand():
            assert config.recompile_limit == 17
            config.recompile_limit = 18
        assert config.recompile_limit == 18
    finally:
        config.recompile_limit = before


def test_one_that_is_deleted_or_never_was_is_none(at_hand: bool) -> None:
    before = config.recompile_limit
    del config.recompile_limit
    try:
        assert not hasattr(config, "recompile_limit")
        with pytest.raises(AttributeError, match=r"config\.recompile_limit does not exist"):
            _ = config.recompile_limit
    finally:
        config.recompile_limit = before
    assert config.recompile_limit == before
    with pytest.raises(AttributeError, match="no_such_setting"):
        _ = config.no_such_setting  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no_such_setting"):
        config.no_such_setting = 1  # type: ignore[attr-defined]


def in_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_sees_what_it_would_see() -> None:
    def seen() -> list[Any]:
        with config.patch(recompile_limit=11):
            found = [in_thread(lambda: config.recompile_limit), config.recompile_limit]

            def of_its_own() -> int:
                with config.patch(recompile_limit=12):
                    return int(config.recompile_limit)

            return [*found, in_thread(of_its_own), config.recompile_limit]

    without = seen()
    with settings_at_hand():
        assert seen() == without


def test_what_is_no_plain_value_stays_with_torch() -> None:
    with settings_at_hand():
        assert config.reorderable_logging_functions is config.reorderable_logging_functions
        for name, entry in vars(config)["_config"].items():
            if entry.alias is not None or isinstance(entry.default, set | list | dict):
                assert name not in vars(type(config))


def test_a_capture_obeys_a_setting_that_is_changed_in_it() -> None:
    seen: list[Any] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        with config.patch(recompile_limit=9):
            seen.append(config.recompile_limit)
        seen.append(config.recompile_limit)
        return graph.forward

    from compiler.capture.shortcuts.while_captured import shorten_captures_for

    shorten_captures_for(backend)
    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
    assert seen == [9, config.recompile_limit]

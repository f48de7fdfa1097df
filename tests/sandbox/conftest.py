"""Boxes for the tests of this folder: each tier, with a worker that is root, one in a container, and a plain one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.sandbox.config import FIRST_JOB_USER

from .harness import PLAIN_USER, Box, Outside

Setting = tuple[str, int, bool]
"""The tier, the worker's user, and whether it has no more than a container's root."""

SETTINGS: list[Setting]
if os.geteuid() == 0:
    SETTINGS = [("A", 0, False), ("A", PLAIN_USER, False), ("B", 0, False), ("B", 0, True), ("B", PLAIN_USER, False)]
else:
    SETTINGS = [("A", os.geteuid(), False), ("B", os.geteuid(), False)]


def name_of(setting: Setting) -> str:
    tier, user, is_contained = setting
    return f"{tier}-{'plain' if user else 'container' if is_contained else 'root'}"


@pytest.fixture(scope="session")
def boxes() -> Iterator[dict[Setting, Box]]:
    """Started when they are first asked for, and then kept: they run one job after another as a service does."""
    started: dict[Setting, Box] = {}
    yield started
    for box in started.values():
        box.close()


def box_of(setting: Setting, boxes: dict[Setting, Box]) -> Box:
    if setting not in boxes:
        tier, user, is_contained = setting
        boxes[setting] = Box(tier, user, is_contained=is_contained)
    return boxes[setting]


ABOUT_POWER = ("test_limits", "test_survival")
"""Modules whose promises depend on what root may do; to the others a container's root is like any."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "box" in metafunc.fixturenames:
        is_about_power = metafunc.module.__name__.rpartition(".")[2] in ABOUT_POWER
        settings = [setting for setting in SETTINGS if is_about_power or not setting[2]]
        metafunc.parametrize("box", settings, ids=name_of, indirect=True)


@pytest.fixture
def box(request: pytest.FixtureRequest, boxes: dict[Setting, Box]) -> Iterator[Box]:
    """A box, which after the test must still do its work, and in which a job that ran meanwhile was not disturbed."""
    box = box_of(request.param, boxes)
    sibling = box.start("import sys\nsys.stdin.read()\nprint('undisturbed')")
    yield box
    box.release(sibling)
    assert box.result(sibling).output == "undisturbed\n"
    assert box.run("print(6 * 7)").output == "42\n"


@pytest.fixture
def outside(box: Box) -> Iterator[Outside]:
    """Witnesses that belong to the user whom jobs of this box have, or would be given first."""
    user = box.user if box.user != 0 else FIRST_JOB_USER
    with tempfile.TemporaryDirectory(prefix="outside-") as name:
        witnesses = Outside(Path(name), user)
        yield witnesses
        witnesses.close()

"""Boxes for the tests of this folder: each tier, with a worker that is root and with one that is not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.sandbox.config import FIRST_JOB_USER

from .harness import PLAIN_USER, Box, Outside

USERS = (0, PLAIN_USER) if os.geteuid() == 0 else (os.geteuid(),)
SETTINGS = [(tier, user) for tier in ("A", "B") for user in USERS]


@pytest.fixture(scope="session")
def boxes() -> Iterator[dict[tuple[str, int], Box]]:
    """Started when they are first asked for, and then kept: they run one job after another as a service does."""
    started: dict[tuple[str, int], Box] = {}
    yield started
    for box in started.values():
        box.close()


@pytest.fixture(params=SETTINGS, ids=[f"{tier}-{'root' if user == 0 else 'plain'}" for tier, user in SETTINGS])
def box(request: pytest.FixtureRequest, boxes: dict[tuple[str, int], Box]) -> Iterator[Box]:
    """A box, which after the test must still do its work, and in which a job that ran meanwhile was not disturbed."""
    tier, user = request.param
    if (tier, user) not in boxes:
        boxes[tier, user] = Box(tier, user)
    box = boxes[tier, user]
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

"""What torch keeps for all that runs in a process may be freed by others: replays give the right values still."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("others", ["workspaces", "inductor"])
def test_replays_outlive_what_others_free(others: str) -> None:
    command = [sys.executable, "-m", "tests.replay.beside_others", others]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr[-4000:]

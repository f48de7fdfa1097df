"""Temporary folders of dead programs are removed by the next one; those of living ones, and of others, are not."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from server.own_folders import OwnFolder

MAKE = "from server.own_folders import OwnFolder; print(OwnFolder('own-').path, flush=True); input()"


def test_what_a_killed_program_left_goes_with_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "own-link"
    elsewhere.mkdir()
    link.symlink_to(elsewhere)
    with subprocess.Popen([sys.executable, "-c", MAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        theirs = Path(program.stdout.readline().decode().strip())
        with OwnFolder("own-") as first:
            assert theirs.is_dir() and first.path.is_dir()
        assert not first.path.exists()
        program.kill()
        program.wait()
    assert theirs.is_dir()
    with OwnFolder("own-") as second:
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["elsewhere", link.name, second.path.name])

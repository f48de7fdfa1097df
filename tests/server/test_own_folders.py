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


def test_a_folder_that_was_deleted_is_made_anew_and_never_taken_from_somebody(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path))
        folder = OwnFolder("own-")
    assert folder.is_whole
    folder.path.rmdir()
    folder.path.mkdir()
    assert not folder.is_whole, "somebody else's"
    with pytest.raises(FileExistsError):
        folder.restore()
    folder.path.rmdir()
    folder.restore()
    assert folder.is_whole and folder.path.stat().st_mode & 0o777 == 0o700
    folder.path.rmdir()
    folder.path.mkdir()
    folder.remove()
    assert folder.path.is_dir(), "which is not ours to delete"

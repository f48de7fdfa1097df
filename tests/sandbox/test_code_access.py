"""Folders of root's own, which jobs of other users have to read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from server.sandbox.code_access import open_to_others

AS_ANOTHER = """
import os, sys
from pathlib import Path
from server.sandbox.code_access import open_to_others
needed, workspace = map(Path, sys.argv[1:])
os.umask(0o077)
open_to_others([needed], workspace)
os.setresuid(65534, 65534, 65534)
print((needed / "code.py").read_text())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter, which pytest's own may not be."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


def test_a_folder_that_is_closed_itself_is_refused_with_the_remedy(folder: Path) -> None:
    """It cannot be opened by a mount: the attempt went on for ever."""
    closed = folder / "environment"
    closed.mkdir(mode=0o700)
    with pytest.raises(PermissionError, match=f"chmod o\\+rx {closed}"):
        open_to_others([closed], folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root's folders are opened, by mounts")
def test_what_root_keeps_to_itself_is_read_by_others_whatever_the_umask(folder: Path) -> None:
    needed, workspace = folder / "closed" / "within" / "environment", folder / "workspace"
    needed.mkdir(parents=True)
    workspace.mkdir()
    (needed / "code.py").write_text("read")
    (folder / "closed").chmod(0o700)
    asked = [sys.executable, "-c", AS_ANOTHER, str(needed), str(workspace)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    if "cannot be changed by a mount" in done.stderr:
        pytest.skip(f"mounts are forbidden here: {done.stderr.splitlines()[-1]}")
    assert done.stdout == "read\n", done.stderr

"""Trees that were made to resist are deleted, and nothing that links lead to is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from server.sandbox.leftovers import remove_job_folders, remove_tree


def make_deep(folder: Path, depth: int) -> None:
    """Deeper than a path can be long, in a process of its own: it ends up in a folder that it could not name."""
    program = f"import os\nfor _ in range({depth}):\n    os.mkdir('d' * 20); os.chdir('d' * 20)\n"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def test_a_deep_tree_is_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "job-1"
    folder.mkdir()
    make_deep(folder, 600)
    assert remove_tree(folder)
    assert list(tmp_path.iterdir()) == []


def test_closed_folders_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "job-1"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").touch()
    for path in (folder / "a" / "b", folder / "a", folder):
        path.chmod(0)
    assert remove_tree(folder)


def test_links_are_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    folder = tmp_path / "job-1"
    folder.mkdir()
    (folder / "link").symlink_to(kept)
    (folder / "broken").symlink_to("nowhere")
    os.link(kept / "file", folder / "hard")
    (tmp_path / "job-2").symlink_to(kept)
    assert remove_job_folders(tmp_path)
    assert (kept / "file").read_text() == "kept"
    assert not folder.exists()


def test_what_is_not_there_is_deleted(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "nothing") and remove_tree(tmp_path / "no" / "folder")

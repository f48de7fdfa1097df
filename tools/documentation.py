"""Build the documentation site from `docs/` into `server/documentation`, which the service serves under /docs/.

    python tools/documentation.py

`docs/conf.py` says what it is made with. A warning of Sphinx, such as a broken link or a page in no table of contents,
ends the build. It does nothing where the site was built from these very sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "server" / "documentation"
STAMP = ROOT / ".cache" / "documentation-built-from"
#: Pages that stand elsewhere, and are read from there.
ELSEWHERE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "client/README.md")
NOT_SERVED = (".buildinfo", "objects.inv")


class BadDocuments(Exception):
    """The site cannot be built; the message has what Sphinx said."""


def build() -> None:
    """The site, whole or not at all. Raises `BadDocuments`."""
    STAMP.parent.mkdir(exist_ok=True)
    with STAMP.with_suffix(".lock").open("w") as lock:
        # Two test workers may come here at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build()


def _build() -> None:
    wanted = digest()
    if STAMP.is_file() and STAMP.read_text() == wanted and (SITE / "index.html").is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "site")
        options = ["--quiet", "--nitpicky", "--fail-on-warning", "--jobs", "2", "--doctree-dir", f"{folder}/doctrees"]
        command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(made)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise BadDocuments(done.stderr or done.stdout)
        for name in NOT_SERVED:
            (made / name).unlink()
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.move(made, SITE)
    STAMP.write_text(wanted)


def sources() -> Iterator[Path]:
    """Every file that the site is made of."""
    for path in DOCS.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".json":
            yield path
    yield Path(__file__)
    yield from (ROOT / name for name in ELSEWHERE)


def digest() -> str:
    """Of names and contents of the sources."""
    found = hashlib.sha256()
    for path in sorted(sources()):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def main() -> int:
    try:
        build()
    except BadDocuments as problem:
        print(f"The documentation cannot be built:\n{problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

